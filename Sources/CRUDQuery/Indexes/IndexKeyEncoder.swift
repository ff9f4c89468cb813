package import CRUDJSON
package import CRUDModel

/// Makes the index keys of items, as ``IndexKey`` describes them. One encoder serves one thread at a time.
package struct IndexKeyEncoder: ~Copyable {
    private var finder: PropertyFinder
    private let count: Int
    private var key: [UInt8] = []

    /// - Parameter paths: the properties that are indexed.
    package init(_ paths: [PropertyPath]) {
        finder = PropertyFinder(paths)
        count = paths.count
    }

    /// Makes the keys of an item, one for each path.
    ///
    /// - Parameter body: receives the position of a path and its key, of at most 512 bytes, which is valid until `body`
    ///   returns. An empty one means that the value is too long for a key.
    /// - Throws: `JSONSyntaxError` where the item is not valid JSON.
    package mutating func encode(
        _ item: Span<UInt8>, _ body: (Int, UnsafeRawBufferPointer) -> Void
    ) throws(JSONSyntaxError) {
        var work = Work()
        try encode(item, &work, body)
    }

    /// As ``encode(_:_:)``; throws where the work is stopped.
    package mutating func encode(
        _ item: Span<UInt8>, _ work: inout Work, _ body: (Int, UnsafeRawBufferPointer) -> Void
    ) throws(JSONSyntaxError) {
        try finder.find(in: item, &work)
        for path in 0..<count {
            key.removeAll(keepingCapacity: true)
            IndexKey.append(finder[path], item, to: &key, &work)
            key.withUnsafeBytes { body(path, $0) }
        }
    }
}
