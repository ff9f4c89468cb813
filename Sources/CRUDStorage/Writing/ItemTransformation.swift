package import CRUDModel

/// Makes the item that a mutation stores from the current one: a patch, say.
///
/// It is called on the backend's writing thread, or on another one where it takes long: once, and again where another
/// program has changed the record meanwhile, or a mutation before it in the same commit has failed.
package protocol ItemTransformation: AnyObject, Sendable {
    /// - Parameter item: the stored bytes of the current item; nil: there is no record.
    /// - Throws: why the mutation is not made.
    func transform(_ item: [UInt8]?) throws(CRUDError) -> TransformedItem

    /// Whether a record that is there expires when it did before; else the mutation says when.
    var keepsExpiry: Bool { get }

    /// Whether it takes more than a millisecond, however short the current item is.
    var takesLong: Bool { get }
}

extension ItemTransformation {
    package var keepsExpiry: Bool { true }
    package var takesLong: Bool { false }
}

/// What an ``ItemTransformation`` has made.
package struct TransformedItem: Sendable {
    /// The bytes to store.
    package var stored: [UInt8]
    /// The item as clients see it, where that differs.
    package var shown: [UInt8]?
    /// The index keys of the item.
    package var keys: IndexKeys

    package init(stored: [UInt8], shown: [UInt8]? = nil, keys: IndexKeys = .none) {
        self.stored = stored
        self.shown = shown
        self.keys = keys
    }
}
