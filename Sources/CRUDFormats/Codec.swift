import CRUDJSON
package import CRUDModel

/// Between an item's JSON text and the bytes that a backend stores.
///
/// Filters, patches and projections work on JSON text only; the codec converts it. JSON is stored as it is. The two
/// property list formats are read and written here, without Foundation, so that the daemon does not need it: a reader
/// parses one form and passes each value to a ``PropertyListSink``, which writes the other form.
///
///     encode   ItemReader ─▶ XMLPropertyListWriter     decode   XMLPropertyListReader ─▶ ItemWriter
///              ItemReader ─▶ BinaryPropertyListWriter           BinaryPropertyListReader ─▶ ItemWriter
///
/// Conversion is lossless: an item that a property list cannot represent is refused. Stored bytes may have been written
/// by anybody, so decoding validates all of them, and its time and memory are bounded by their size and by the longest
/// item.
package struct Codec: Sendable {
    private let format: CollectionRule.Format

    package init(_ format: CollectionRule.Format) {
        self.format = format
    }

    /// Whether items are stored as their JSON text.
    package var keepsText: Bool { format == .json }

    /// How deep stored arrays and dictionaries may nest: the greatest value of `json_depth`.
    static let maximumDepth = 1000

    /// The most stored bytes that an item of `itemBytes` bytes can take.
    package func maximumStoredBytes(ofItem itemBytes: Int) -> Int {
        switch format {
        case .json: itemBytes
        case .xml: XMLPropertyListWriter.maximumBytes(ofItem: itemBytes)
        case .plist: BinaryPropertyListWriter.maximumBytes(ofItem: itemBytes)
        }
    }

    /// Appends an item in its stored form.
    ///
    /// - Parameter item: valid JSON text in normal form: no two members of an object have the same name.
    /// - Throws: `unsupported` if the format cannot represent the item without loss; `details.path` is the path of the
    ///   value that it cannot represent.
    package func encode(item: Span<UInt8>, into stored: inout [UInt8]) throws(CRUDError) {
        switch format {
        case .json:
            stored.append(item)
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

    /// Whether the text of a stored item is longer than that although the item is not: a binary property list stores
    /// equal strings once.
    package func isText(ofStored stored: Span<UInt8>, longerThan maximumBytes: Int) -> Bool {
        guard format == .plist else { return false }
        var text: [UInt8] = []
        do throws(CRUDError) {
            try decode(stored: stored, into: &text, maximumBytes: maximumBytes)
            return false
        } catch {
            return error.code == .limitExceeded
        }
    }

    /// Decodes a stored item and appends its JSON text.
    ///
    /// - Parameter maximumBytes: the longest text; a small binary property list can represent an enormous item.
    /// - Throws: `corrupt` if the bytes cannot be decoded, `limit_exceeded` if the text would be longer than
    ///   `maximumBytes`.
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
    /// Stored bytes cannot be decoded, and why.
    static func corrupt(_ reason: String) -> CRUDError {
        CRUDError(.corrupt, "the stored item cannot be decoded: \(reason)")
    }
}
