package import CRUDJSON
package import CRUDModel

/// An index that can serve queries: it is complete but for the records that are unkeyed in it.
package struct QueryIndex: Sendable, Equatable {
    package var path: PropertyPath
    /// The index's position among those that the collection was opened with.
    package var number: Int

    package init(path: PropertyPath, number: Int) {
        self.path = path
        self.number = number
    }
}

/// What the executor has to know of a collection.
package struct QueryTarget: Sendable {
    /// Appends the JSON text of an item that is given in its stored form.
    ///
    /// It bounds the text that it makes, and throws `corrupt` or `limit_exceeded` for a stored item without one. Where
    /// its work is stopped, what it has made means nothing.
    package typealias Decoder = @Sendable (Span<UInt8>, inout [UInt8], inout Work) throws(CRUDError) -> Void

    /// The collection's name, to which cursors are bound.
    package var name: [UInt8]
    package var indexes: [QueryIndex]
    /// nil: items are stored as JSON text.
    package var decode: Decoder?

    package init(name: [UInt8], indexes: [QueryIndex] = [], decode: Decoder? = nil) {
        self.name = name
        self.indexes = indexes
        self.decode = decode
    }
}
