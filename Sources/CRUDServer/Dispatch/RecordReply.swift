import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost

/// Writes the record that a read finds into the reply: `,"item":…,"revision":…` behind an id that is there already.
///
/// An item that is stored as JSON text is passed on as it is, after a scan: somebody may have edited the storage by
/// hand, and what is no JSON must not get into a frame.
final class RecordReply: RecordSink {
    private let reply: ReplyWriter
    /// No reply can be longer, and so no item in it.
    var maximumBytes: Int
    private var codec = Codec(.json)
    private var projection: FieldProjection?
    private var outcome = Outcome.nothing
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) private var scanner = JSONScanner()

    private enum Outcome {
        case nothing
        case record
        /// A record that cannot be answered. (Indirect, since an error is large and this is looked at for each record.)
        indirect case fault(CRUDError)
    }

    init(reply: ReplyWriter, maximumBytes: Int) {
        self.reply = reply
        self.maximumBytes = maximumBytes
    }

    /// Makes ready for one record, stored by that codec.
    func begin(_ codec: Codec, projection: FieldProjection? = nil) {
        self.codec = codec
        self.projection = projection
        outcome = .nothing
    }

    /// Whether a record has come.
    ///
    /// - Throws: `corrupt` if its item cannot be decoded, `limit_exceeded` if it is longer than a frame.
    func foundRecord() throws(CRUDError) -> Bool {
        switch outcome {
        case .nothing: return false
        case .record: return true
        case .fault(let error): throw error
        }
    }

    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        do throws(CRUDError) {
            // The buffer is valid during this call.
            try unsafe append(stored: item.bindMemory(to: UInt8.self).span, revision)
            outcome = .record
        } catch {
            outcome = .fault(error)
        }
        return true
    }

    private func append(stored: Span<UInt8>, _ revision: UnsafeRawBufferPointer) throws(CRUDError) {
        guard codec.keepsText else {
            var item: [UInt8] = []
            try codec.decode(stored: stored, into: &item, maximumBytes: maximumBytes)
            return try append(item: item.span, revision)
        }
        try check(stored)
        try append(item: stored, revision)
    }

    private func check(_ text: Span<UInt8>) throws(CRUDError) {
        do throws(JSONSyntaxError) {
            scanner.reset()
            _ = try scanner.value(text)
            if scanner.isAtEnd(text) { return }
        } catch {}
        throw Self.noJSON
    }

    private static let noJSON = CRUDError(.corrupt, "the stored item is no JSON")

    /// Appends an item's text, or the part of it that is wanted.
    private func append(item: Span<UInt8>, _ revision: UnsafeRawBufferPointer) throws(CRUDError) {
        guard let projection else { return reply.append(item: item, revision: revision) }
        guard !projection.isEmpty else { return reply.append(revision: revision) }
        var projected: [UInt8] = []
        do throws(JSONSyntaxError) {
            try projection.append(of: item, to: &projected)
        } catch {
            throw Self.noJSON
        }
        reply.append(item: projected.span, revision: revision)
    }
}
