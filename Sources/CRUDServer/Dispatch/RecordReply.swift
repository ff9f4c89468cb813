import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost

/// Writes the record that a read finds into the reply: `,"item":…,"revision":…` behind an id that is there already.
///
/// The item is passed on as it is stored, after a scan: somebody may have edited the storage by hand, and what is no
/// JSON must not get into a frame.
final class RecordReply: RecordSink {
    private let reply: ReplyWriter
    private var projection: FieldProjection?
    private var hasReceived = false
    private var isCorrupt = false
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) private var scanner = JSONScanner()

    init(reply: ReplyWriter) {
        self.reply = reply
    }

    /// Makes ready for one record.
    func begin(projection: FieldProjection? = nil) {
        self.projection = projection
        hasReceived = false
        isCorrupt = false
    }

    /// Whether a record has come.
    ///
    /// - Throws: `corrupt` if its item is no JSON.
    func foundRecord() throws(CRUDError) -> Bool {
        if isCorrupt { throw CRUDError(.corrupt, "the stored item is no JSON") }
        return hasReceived
    }

    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        hasReceived = true
        do throws(JSONSyntaxError) {
            // The buffer is valid during this call.
            try unsafe append(item: item.bindMemory(to: UInt8.self).span, revision)
        } catch {
            isCorrupt = true
        }
        return true
    }

    private func append(item: Span<UInt8>, _ revision: UnsafeRawBufferPointer) throws(JSONSyntaxError) {
        scanner.reset()
        _ = try scanner.value(item)
        guard scanner.isAtEnd(item) else {
            throw JSONSyntaxError(reason: .trailingBytes, offset: scanner.position)
        }
        guard let projection else { return reply.append(item: item, revision: revision) }
        guard !projection.isEmpty else { return reply.append(revision: revision) }
        var projected: [UInt8] = []
        try projection.append(of: item, to: &projected)
        reply.append(item: projected.span, revision: revision)
    }
}
