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

/// A read of records in flight, which has been given some room for them. Where they take more it begins again.
class PendingRecordRead: PendingRead {
    /// As they were sent: strings of JSON.
    final let sentIDs: [ArraySlice<UInt8>]
    /// How many bytes of items and revisions it may find.
    private var maximumBytes: Int
    /// How many it may find at the most.
    private let limitBytes: Int

    /// How much more room there is the second time, and the third.
    private static let growth = 32

    init(
        _ call: borrowing Call, _ collection: Collection, sentIDs: [ArraySlice<UInt8>], maximumBytes: Int,
        limitBytes: Int
    ) {
        self.sentIDs = sentIDs
        self.maximumBytes = maximumBytes
        self.limitBytes = limitBytes
        super.init(call, .read, on: collection, replyBytes: maximumBytes)
    }

    /// One of the ids, decoded.
    final func id(_ index: Int) -> [UInt8] {
        let text = sentIDs[index]
        var scanner = JSONScanner()
        // It has been found valid when it came.
        let string = try? scanner.value(text.span)
        return string?.decodedString(text.span) ?? []
    }

    final func submit(_ ids: [JSONSlice], of call: borrowing Call, in collection: Collection) {
        submit(ids, of: call, in: collection) { read($0, in: collection) }
    }

    private func read(_ ids: [ByteArena.Place], in collection: Collection) -> Read {
        Read(.records(ids), in: collection.stored, maximumBytes: maximumBytes)
    }

    final override func bytesMissing(after item: WorkItem, _ range: Range<Int>) -> Int {
        guard let batch = item as? ReadBatch, case .tooLong = batch.result(at: range.lowerBound) else { return 0 }
        return min(limitBytes, maximumBytes * Self.growth) - maximumBytes
    }

    final override func submitAgain(withRoomFor bytes: Int) {
        guard let collection else { return }
        maximumBytes += bytes
        let batch = collection.store.pendingReads(for: collection.stored)
        let places = sentIDs.indices.map { index in
            let id = id(index)
            return batch.store(id.span)
        }
        collection.store.submit(read(places, in: collection), for: self)
    }
}
