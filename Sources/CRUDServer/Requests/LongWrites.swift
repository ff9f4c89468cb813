import CRUDConfiguration
import CRUDFormats
import CRUDJSON
import CRUDStorage

// Writes whose items take long to make, see ``LongWrite``.

extension Collection {
    /// Whether it takes long to make the item of a write.
    ///
    /// - Parameters:
    ///   - item: what the request says, if it does.
    ///   - patch: what the request says, if it does.
    func takesLong(_ item: JSONSlice?, patch: JSONSlice?) -> Bool {
        if let patch { return patch.count >= LongItem.leastBytes }
        guard let item, item.count >= LongItem.leastBytes else { return false }
        return !codec.keepsText
    }
}

extension Configuration.Limits {
    /// How much is held for a long write beside its request and its reply: the current item, and the new one.
    var longWriteBytes: Int { 2 * itemBytes }
}
