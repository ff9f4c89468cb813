import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDQuery

/// The index keys of one record, and the layout of its collection by which they were made.
package struct IndexKeys: Sendable {
    /// One for each index; an empty one stands for none.
    var keys: [[UInt8]]
    /// See ``BackendCollection/layoutNumber``.
    var layout: UInt32

    init(_ keys: [[UInt8]], layout: UInt32) {
        self.keys = keys
        self.layout = layout
    }

    /// No keys have been made.
    package static let none = IndexKeys([], layout: 0)
}

/// Makes the index keys of one record after the other.
struct RecordKeys: ~Copyable {
    private var encoder: IndexKeyEncoder
    private let count: Int

    init(_ paths: [PropertyPath]) {
        encoder = IndexKeyEncoder(paths)
        count = paths.count
    }

    /// The keys of an item: one for each index, an empty one where its value is too long for a key.
    ///
    /// - Returns: nil where the text is not valid JSON.
    mutating func keys(of item: Span<UInt8>) -> [[UInt8]]? {
        var work = Work()
        return keys(of: item, &work)
    }

    /// As ``keys(of:)``; nil where the work is stopped, too.
    mutating func keys(of item: Span<UInt8>, _ work: inout Work) -> [[UInt8]]? {
        var keys = [[UInt8]](repeating: [], count: count)
        do throws(JSONSyntaxError) {
            try encoder.encode(item, &work) { keys[$0] = Array($1) }
            return keys
        } catch {
            return nil
        }
    }

    /// The keys of an item in its stored form.
    ///
    /// - Returns: nil where it cannot be decoded.
    mutating func keys(ofStored stored: Span<UInt8>, _ codec: Codec) -> [[UInt8]]? {
        var work = Work()
        return keys(ofStored: stored, codec, &work)
    }

    /// As ``keys(ofStored:_:)``; nil where the work is stopped, too.
    mutating func keys(ofStored stored: Span<UInt8>, _ codec: Codec, _ work: inout Work) -> [[UInt8]]? {
        guard !codec.keepsText else { return keys(of: stored, &work) }
        var text: [UInt8] = []
        do throws(CRUDError) {
            try codec.decode(stored: stored, into: &text, maximumBytes: Self.maximumTextBytes, &work)
            return keys(of: text.span, &work)
        } catch {
            return nil
        }
    }

    /// The longest item that is worth an index key.
    private static let maximumTextBytes = 64 << 20
}
