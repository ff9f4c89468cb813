package import CRUDJSON
package import CRUDModel

extension JSONWriter {
    /// `backend` and `format`.
    package mutating func members(of place: CollectionPlace) {
        member("backend", place.backend)
        member("format", place.format.rawValue)
    }
}
