package import CRUDConfiguration
import CRUDJSON
package import CRUDModel

/// Between an item's JSON text and the bytes that a backend stores.
///
/// Filters, patches and projections know JSON text only; a codec is where a format begins. JSON is kept as it is. The
/// two property lists have reading and writing of their own here, without Foundation, so that the daemon needs none:
/// a reader takes one form apart and tells a ``PropertyListSink`` value by value, and the sink writes the other form.
///
///     encode   ItemReader ─▶ XMLPropertyListWriter     decode   XMLPropertyListReader ─▶ ItemWriter
///              ItemReader ─▶ BinaryPropertyListWriter           BinaryPropertyListReader ─▶ ItemWriter
///
/// Nothing is changed on the way: what a property list cannot hold is refused. Stored bytes may have been written by
/// anybody, so that decoding trusts none of them, and takes no more time and memory than their size and the longest
/// item allow.
package struct Codec: Sendable {
    private let format: CollectionRule.Format

    package init(_ format: CollectionRule.Format) {
        self.format = format
    }

    /// Whether items are stored as the JSON text that they are.
    package var keepsText: Bool { format == .json }

    /// How deep stored arrays and dictionaries may nest: as deep as `json_depth` may allow at the most.
    static let maximumDepth = 1000

    /// How many stored bytes an item of so many bytes can take at the most.
    package func maximumStoredBytes(ofItem itemBytes: Int) -> Int {
        switch format {
        case .json: itemBytes
        case .xml: XMLPropertyListWriter.maximumBytes(ofItem: itemBytes)
        case .plist: BinaryPropertyListWriter.maximumBytes(ofItem: itemBytes)
        }
    }

    /// Appends an item as it is stored.
    ///
    /// - Parameter item: JSON text that has been found valid and brought into normal form, so that no two members of an
    ///   object have one name.
    /// - Throws: `unsupported` where the format cannot hold the item without loss; `details.path` says what of it.
    package func encode(item: Span<UInt8>, into stored: inout [UInt8]) throws(CRUDError) {
        switch format {
        case .json:
            for index in item.indices { stored.append(item[index]) }
        case .xml:
            var writer = XMLPropertyListWriter(itemBytes: item.count)
            swap(&writer.bytes, &stored)
            defer { swap(&writer.bytes, &stored) }
            writer.begin()
            var reader = ItemReader()
            try reader.read(item, into: &writer)
            writer.finish()
        case .plist:
            var writer = BinaryPropertyListWriter()
            var reader = ItemReader()
            try reader.read(item, into: &writer)
            writer.finish(into: &stored)
        }
    }

    /// Appends the item that stored bytes hold, as JSON text.
    ///
    /// - Parameter maximumBytes: how long the text may become; a small binary property list can stand for an enormous
    ///   item.
    /// - Throws: `corrupt` where they hold none, `limit_exceeded` where it would be longer than `maximumBytes`.
    package func decode(
        stored: Span<UInt8>, into item: inout [UInt8], maximumBytes: Int
    ) throws(CRUDError) {
        var writer = ItemWriter(maximumBytes: maximumBytes)
        swap(&writer.bytes, &item)
        defer { swap(&writer.bytes, &item) }
        switch format {
        case .json: try writer.text(stored)
        case .xml:
            var reader = XMLPropertyListReader()
            try reader.read(stored, into: &writer)
        case .plist:
            var reader = try BinaryPropertyListReader(stored)
            try reader.read(stored, into: &writer)
        }
    }
}

extension CRUDError {
    /// Stored bytes that are no item, and why.
    static func corrupt(_ reason: String) -> CRUDError {
        CRUDError(.corrupt, "the stored item cannot be decoded: \(reason)")
    }
}
