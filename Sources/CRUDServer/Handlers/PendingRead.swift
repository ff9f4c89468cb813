import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage

/// A read in flight. Its subclasses append their results.
class PendingRead: PendingRequest {
    final override func reply(with item: WorkItem, _ range: Range<Int>) {
        guard let batch = item as? ReadBatch else { return }
        reply { output throws(CRUDError) in
            switch batch.result(at: range.lowerBound) {
            case .records(let records): try append(records, of: batch, to: &output)
            case .count(let count): append(count, to: &output)
            case .tooLong: throw .replyTooLong(maximumBytes: session.loop.limits.frameBytes)
            case .failed(let error): throw error
            }
        }
    }

    func append(_ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer) throws(CRUDError) {}

    /// Of a read that only counts.
    func append(_ count: Int, to output: inout StreamBuffer) {
        output.appendObject { $0.member("count", count) }
    }

    /// Submits a read of records whose ids these strings of the call spell.
    final func submit(
        _ ids: [JSONSlice], of call: borrowing Call, in collection: Collection,
        _ read: ([ByteArena.Place]) -> Read
    ) {
        let batch = collection.store.pendingReads(for: collection.stored)
        var places: [ByteArena.Place] = []
        places.reserveCapacity(ids.count)
        for id in ids { places.append(call.withDecoded(id) { batch.store($0) }) }
        start()
        collection.store.submit(read(places), for: self)
    }

    /// Submits a count of the records whose ids begin with `prefix`.
    final func submit(countWithPrefix prefix: [UInt8], in collection: Collection) {
        let batch = collection.store.pendingReads(for: collection.stored)
        let prefix = batch.store(prefix.span)
        start()
        collection.store.submit(Read(.count(prefix: prefix), in: collection.stored), for: self)
    }
}
