import CRUDFormats
package import CRUDJSON
package import CRUDModel

/// Makes the item that a mutation stores from the current one: a patch, say.
///
/// It is called on the backend's writing thread, or on another one where it takes long: once, and again where another
/// program has changed the record meanwhile, or a mutation before it in the same commit has failed.
package protocol ItemTransformation: AnyObject, Sendable {
    /// - Parameters:
    ///   - item: the stored bytes of the current item; nil: there is no record.
    ///   - work: what it counts; where it is stopped, whatever comes of it means nothing.
    /// - Throws: why the mutation is not made.
    func transform(_ item: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem

    /// Whether a record that is there expires when it did before; else the mutation says when.
    var keepsExpiry: Bool { get }

    /// How many bytes it works on beside the current item.
    var byteCount: Int { get }

    /// Whether it takes more than a millisecond or two: another thread does it then.
    ///
    /// - Parameter item: the stored bytes of the current item; nil: there is none, or it is not known.
    func takesLong(of item: [UInt8]?) -> Bool
}

extension ItemTransformation {
    package var keepsExpiry: Bool { true }
    package var byteCount: Int { 0 }
    package func takesLong(of item: [UInt8]?) -> Bool { byteCount + (item?.count ?? 0) >= LongItem.leastBytes }
}

extension BackendCollection {
    /// Whether a transformation takes long.
    ///
    /// - Parameters:
    ///   - item: the stored bytes of the current item.
    ///   - byteCount: on how many bytes it works beside that.
    func takesLong(of item: [UInt8]?, _ byteCount: Int) -> Bool {
        let least = LongItem.leastBytes - byteCount
        guard let item else { return least <= 0 }
        return codec.isDecoding(item.span, longerThanOf: least)
    }
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
