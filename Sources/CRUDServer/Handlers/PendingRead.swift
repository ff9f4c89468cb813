import CRUDConfiguration
import CRUDEventLoop
import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage

/// A read in flight. Its subclasses append their results.
class PendingRead: PendingRequest {
    override func reply(with result: WorkResult) {
        guard case .read(let batch, let position) = result else { return super.reply(with: result) }
        reply { output throws(CRUDError) in
            switch batch.result(at: position) {
            case .records(let records): try append(records, of: batch, to: &output)
            case .count(let count): append(count, to: &output)
            case .partial: throw naming(.replyTooLong(maximumBytes: session.loop.limits.frameBytes))
            case .failed(let error): throw naming(error)
            }
        }
    }

    func append(_ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer) throws(CRUDError) {}

    /// Of a read that only counts.
    func append(_ count: Int, to output: inout StreamBuffer) {
        output.appendObject { $0.member("count", count) }
    }

    /// Submits a count of the records whose ids begin with `prefix`.
    final func submit(countWithPrefix prefix: [UInt8], in collection: Collection) {
        let batch = collection.store.pendingReads(for: collection.stored)
        let prefix = batch.store(prefix.span)
        start()
        collection.store.submit(Read(.count(prefix: prefix), in: collection.stored), for: self)
    }
}

/// A `record.read` or `record.readMany` in flight, which has been given some room for what it finds. What one record
/// takes beyond comes from the loop's reserve, and is charged when it is there; only where the reserve or its user's
/// share does not have so much, it is read again. Of several records those are read once there is room for that there
/// was none for. Where it takes long to decode what was found, or to find the part that is wanted, another thread makes
/// the result.
final class PendingRecordRead: PendingRead {
    private var result: RecordsResult
    override var recordCount: Int { result.sentIDs.count }
    override var recordID: [UInt8]? { result.sentIDs.count == 1 ? result.id(0) : nil }
    private let writer: RecordWriter
    private let deliver: @Sendable (LongResult) -> Void
    /// The result of items that have been transformed.
    private var made: Result<[UInt8], CRUDError>?
    /// How many bytes of items and revisions it may find.
    private var maximumBytes: Int
    /// What has been found of several records, while it waits for room for the others, and which opening of the
    /// collection had them: the records of a child that is lost may be lost with it.
    private var found: (records: FoundRecords, opening: UInt32)?
    /// What is to be made again once there is room for its result.
    private var long: LongResult?

    /// How much a read may find: what a reply may have, and any record in its stored form.
    static func limitBytes(in collection: Collection, _ limits: Configuration.Limits) -> Int {
        max(limits.frameBytes, collection.codec.maximumStoredBytes(ofItem: limits.itemBytes))
    }

    /// - Parameter deliver: called with a result that another thread has made, on that thread.
    init(
        _ call: borrowing Call, _ collection: Collection, _ result: RecordsResult, _ writer: RecordWriter,
        maximumBytes: Int, _ deliver: @escaping @Sendable (LongResult) -> Void
    ) {
        self.result = result
        self.writer = writer
        self.maximumBytes = maximumBytes
        self.deliver = deliver
        super.init(call, .read, on: collection, replyBytes: maximumBytes)
    }

    override func append(
        _ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer
    ) throws(CRUDError) {
        switch made.take() {
        case .success(let text): output.append(text.span)
        case .failure(let error): throw error
        case nil:
            // The items are copied.
            var work = Work()
            try result.append(records, of: batch, by: writer, to: &output, &work)
        }
    }

    // MARK: Decoding

    override func encodes(_ found: WorkResult) -> Bool {
        guard result.transformsItems, case .read(let batch, let position) = found,
            case .records(let records) = batch.result(at: position)
        else { return false }
        guard !isShort(records, of: batch) else { return false }
        let loop = session.loop
        let (deadline, hangUp) = (deadline, session.hangUp)
        let isAbandoned = { @Sendable in
            hangUp?.hasHappened != false || .nanoseconds(CallContext.monotonicNanoseconds) >= deadline
        }
        make(
            LongResult(
                result, FoundRecords(batch: batch, records: records), maximumBytes: loop.limits.frameBytes,
                isAbandoned: isAbandoned, deliver: deliver))
        return true
    }

    private func make(_ long: LongResult) {
        long.reply = { [self] long, outcome in
            guard !encoded(outcome), missingBytes > 0 else { return }
            long.separate()
            self.long = long
        }
        session.loop.service.decoding.append(long)
    }

    /// Makes the result, unless that takes long, or more room than there is: neither is known before, for a short item
    /// may be stored of which a long one is made.
    private func isShort(_ records: [StoredRecord?], of batch: ReadBatch) -> Bool {
        guard records.reduce(0, { $0 + ($1?.item.count ?? 0) }) < LongItem.leastBytes else { return false }
        var output = StreamBuffer()
        var work = LongItem.shortWork
        do throws(CRUDError) {
            try result.append(records, of: batch, by: writer, to: &output, &work)
            // It is made again where it has to wait.
            if hasRoom(forReply: output.count) { made = .success(Array(output.bytes)) }
        } catch {
            if !work.isStopped { made = .failure(error) }
        }
        return made != nil
    }

    // MARK: Submitting

    /// - Parameter ids: strings of the call.
    func submit(_ ids: [JSONSlice], of call: borrowing Call, in collection: Collection) {
        let batch = collection.store.pendingReads(for: collection.stored)
        var places: [ByteArena.Place] = []
        places.reserveCapacity(ids.count)
        for id in ids { places.append(call.withDecoded(id) { batch.store($0) }) }
        start()
        collection.store.submit(read(places, in: collection), for: self)
    }

    private func read(_ ids: [ByteArena.Place], in collection: Collection) -> Read {
        let loop = session.loop
        let most = Self.limitBytes(in: collection, loop.limits) - maximumBytes
        // An array has been charged for all that its elements may find. What several records take is charged before:
        // there might be no room to keep it.
        let reserve = isInArray || ids.count > 1 || most <= 0 ? nil : Read.Reserve(loop.readReserve, atMost: most)
        return Read(.records(ids), in: collection.stored, maximumBytes: maximumBytes, reserve: reserve)
    }

    override func bytesMissing(after found: WorkResult) -> Int {
        guard let collection, case .read(let batch, let position) = found else { return 0 }
        guard case .partial(_, let lacking) = batch.result(at: position) else {
            let extra = batch.extraBytes(at: position)
            return extra == 0 || session.hasRoom(for: extra) ? 0 : extra
        }
        let most = max(0, Self.limitBytes(in: collection, session.loop.limits) - maximumBytes)
        // How long the other records are is not known.
        return result.sentIDs.count == 1 ? min(lacking, most) : most
    }

    override func keep(_ found: WorkResult) {
        guard result.sentIDs.count > 1, case .read(let batch, let position) = found,
            case .partial(let records, _) = batch.result(at: position)
        else { return }
        self.found = (batch.separate(records), result.collection.openings)
    }

    override func forgetFound() { found = nil }

    override func extraBytes(of found: WorkResult) -> Int {
        if case .read(let batch, let position) = found { batch.extraBytes(at: position) } else { 0 }
    }

    override func submitAgain(withRoomFor bytes: Int) {
        if let long = long.take() { return encodeAgain { make(long) } }
        guard let collection else { return }
        maximumBytes += bytes
        // What was found in another place may be in another format.
        if result.begin(in: collection) || found?.opening != collection.stored.openings { found = nil }
        let batch = collection.store.pendingReads(for: collection.stored)
        let places = result.sentIDs.indices.map { index in
            let id = result.id(index)
            return batch.store(id.span)
        }
        var read = read(places, in: collection)
        if let found = found.take() { read.found = batch.keep(found.records.unexpired(at: CallContext.now)) }
        collection.store.submit(read, for: self)
    }
}
