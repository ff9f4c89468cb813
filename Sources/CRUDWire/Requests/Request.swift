package import CRUDJSON
package import CRUDModel

/// One JSON-RPC request as it stands in its text: ranges, nothing copied.
///
/// A value of this type is made once and used for one request after the other.
package struct Request: ~Copyable {
    /// The `id` member, exactly as it was sent; nil for a notification.
    package internal(set) var id: JSONSlice?
    /// What is asked for.
    package internal(set) var traits = Method.daemonPing.definition.traits
    /// A bit for each parameter that is there.
    private var present: UInt32 = 0
    /// Where each parameter stands; meaningless where its bit is not set.
    private var slots = [JSONSlice](
        repeating: JSONSlice(start: 0, end: 0, kind: .null), count: Parameter.count)

    package init() {}

    /// Where a parameter stands; nil if it was not given.
    package subscript(parameter: Parameter) -> JSONSlice? {
        present & parameter.mask == 0 ? nil : slots[parameter.rawValue]
    }

    package var method: Method { traits.method }

    /// A notification is carried out and never answered.
    package var isNotification: Bool { id == nil }

    mutating func reset() {
        id = nil
        present = 0
    }

    mutating func set(_ parameter: Parameter, _ slice: JSONSlice) {
        present |= parameter.mask
        slots[parameter.rawValue] = slice
    }

    /// The first parameter that the method requires and the request lacks.
    var missingParameter: Parameter? {
        let missing = traits.required & ~present
        return missing == 0 ? nil : Parameter(rawValue: missing.trailingZeroBitCount)
    }
}

/// A request that cannot be carried out: what to answer, and to which id.
package struct RequestFault: Error {
    package var error: CRUDError
    /// The request's id where it is valid and single; nil is answered as null.
    package var id: JSONSlice?
    /// A notification's faults are not answered.
    package var isNotification = false

    package init(_ error: CRUDError, id: JSONSlice? = nil, isNotification: Bool = false) {
        self.error = error
        self.id = id
        self.isNotification = isNotification
    }
}
