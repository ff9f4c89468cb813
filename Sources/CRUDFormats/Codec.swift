package import CRUDJSON
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
/// item. Both directions count their ``Work``, a question for each ``Work/interval``, in whatever the item consists of.
package struct Codec: Sendable {
    private let format: CollectionRule.Format

    package init(_ format: CollectionRule.Format) {
        self.format = format
    }

    /// Whether items are stored as their JSON text.
    package var keepsText: Bool { format == .json }

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
        var work = Work()
        try encode(item: item, into: &stored, &work)
    }

    /// As ``encode(item:into:)``; throws ``CRUDError/stopped`` where the work is stopped.
    package func encode(
        item: Span<UInt8>, into stored: inout [UInt8], _ work: inout Work
    ) throws(CRUDError) {
        do throws(CRUDError) {
            try encodeWhole(item, &stored, &work)
        } catch {
            throw work.isStopped ? .stopped : error
        }
        if work.isStopped { throw .stopped }
    }

    private func encodeWhole(
        _ item: Span<UInt8>, _ stored: inout [UInt8], _ work: inout Work
    ) throws(CRUDError) {
        switch format {
        case .json:
            stored.append(item)
        case .xml:
            var writer = XMLPropertyListWriter(itemBytes: item.count)
            swap(&writer.bytes, &stored)
            defer { swap(&writer.bytes, &stored) }
            writer.begin()
            var reader = ItemReader()
            try reader.read(item, into: &writer, &work)
            writer.finish()
        case .plist:
            var writer = BinaryPropertyListWriter()
            var reader = ItemReader()
            try reader.read(item, into: &writer, &work)
            writer.finish(into: &stored, &work)
        }
    }

    /// Whether it takes longer to decode a stored item than one whose text has so many bytes: a small binary property
    /// list can represent a long item, since it stores equal strings once.
    package func isDecoding(_ stored: Span<UInt8>, longerThanOf bytes: Int) -> Bool {
        guard format == .plist, stored.count < bytes else { return stored.count >= bytes }
        var text: [UInt8] = []
        // Each byte is read and written.
        var work = Work(atMost: 2 * bytes)
        // What cannot be decoded does not take long.
        try? decode(stored: stored, into: &text, maximumBytes: .max, &work)
        return work.isStopped
    }

    /// Decodes a stored item and appends its JSON text.
    ///
    /// - Parameter maximumBytes: the longest text; a small binary property list can represent an enormous item.
    /// - Throws: `corrupt` if the bytes cannot be decoded, `limit_exceeded` if the text would be longer than
    ///   `maximumBytes`.
    package func decode(
        stored: Span<UInt8>, into item: inout [UInt8], maximumBytes: Int
    ) throws(CRUDError) {
        var work = Work()
        try decode(stored: stored, into: &item, maximumBytes: maximumBytes, &work)
    }

    /// As ``decode(stored:into:maximumBytes:)``; throws ``CRUDError/stopped`` where the work is stopped.
    ///
    /// The work is that of the text that is made as well as of the bytes that are read.
    package func decode(
        stored: Span<UInt8>, into item: inout [UInt8], maximumBytes: Int, _ work: inout Work
    ) throws(CRUDError) {
        do throws(CRUDError) {
            try decodeWhole(stored, &item, maximumBytes, &work)
        } catch {
            throw work.isStopped ? .stopped : error
        }
        if work.isStopped { throw .stopped }
    }

    private func decodeWhole(
        _ stored: Span<UInt8>, _ item: inout [UInt8], _ maximumBytes: Int, _ work: inout Work
    ) throws(CRUDError) {
        var writer = ItemWriter(maximumBytes: maximumBytes)
        swap(&writer.bytes, &item)
        defer { swap(&writer.bytes, &item) }
        switch format {
        case .json: try writer.text(stored, &work)
        case .xml:
            var reader = XMLPropertyListReader()
            try reader.read(stored, into: &writer, &work)
        case .plist:
            var reader = try BinaryPropertyListReader(stored)
            try reader.read(stored, into: &writer, &work)
        }
    }
}

extension CRUDError {
    /// Stored bytes cannot be decoded, and why.
    static func corrupt(_ reason: String) -> CRUDError {
        CRUDError(.corrupt, "the stored item cannot be decoded: \(reason)")
    }
}
