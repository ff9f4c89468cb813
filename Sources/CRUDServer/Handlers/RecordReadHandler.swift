import CRUDConfiguration
import CRUDEventLoop
import CRUDFormats
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDStorage
import CRUDWire

/// `record.read`, `record.exists` and `record.readMany`.
final class RecordReadHandler {
    private let loop: LoopState
    private let records: RecordWriter
    private let deliver: @Sendable (LongResult) -> Void

    /// - Parameter mailbox: of the loop, for results that another thread makes.
    init(_ loop: LoopState, _ mailbox: Mailbox) {
        self.loop = loop
        records = RecordWriter(loop.service.cache, maximumItemBytes: loop.limits.frameBytes)
        deliver = { mailbox.post(.decoded($0)) }
    }

    /// Follows other limits.
    func serve(_ limits: Configuration.Limits) { records.maximumItemBytes = limits.frameBytes }

    /// `record.read`. Where the store can read at once, the record goes from the database's memory into the session's
    /// output; this is the path that has to be short.
    func read(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard let id = call[.id] else { return }
        if call[.fields] != nil { try QueryNodes.check(call) }
        let fields = try call.fields
        guard call.wantsReply else { return call.skip() }
        let isRead =
            call.session.mayReadNow(collection)
            && call.replyIfAvailable { output throws(CRUDError) in
                let start = output.count
                output.append(#"{"id":"#)
                output.append(call.text.span.extracting(id.range))
                let isRead = try call.withDecoded(id) { id throws(CRUDError) in
                    try records.read(id, in: collection, fields, into: &output)
                }
                output.append(UInt8(ascii: "}"))
                return isRead && hasRoom(for: output.count - start, in: output, of: call)
            }
        if isRead { return }
        let limit = PendingRecordRead.limitBytes(in: collection, loop.limits)
        var result = RecordsResult(.record(fields), sentIDs: [call.copy(id)[...]], in: collection)
        result.tickets = [records.ticket]
        PendingRecordRead(
            call, collection, result, records,
            maximumBytes: call.array == nil ? min(limit, Self.firstRecordBytes) : limit, deliver
        ).submit([id], of: call, in: collection)
    }

    /// Whether there is room for a result that has been appended to a session's output.
    private func hasRoom(for bytes: Int, in output: borrowing StreamBuffer, of call: borrowing Call) -> Bool {
        bytes <= SessionAccount.modestBytes || call.array != nil || call.session.hasRoom(forOutput: output.count)
    }

    /// How much room a record is given first; most take less.
    private static let firstRecordBytes = 32 << 10
    /// How much room several records are given at least.
    static let leastReplyBytes = 64 << 10

    func exists(_ call: borrowing Call, _ collection: Collection) {
        guard let id = call[.id], call.wantsReply else { return call.skip() }
        if call.session.mayReadNow(collection), let key = collection.cacheKey,
            let exists = call.withDecoded(id, { records.existsCached($0, key) })
        {
            return call.reply { $0.append(exists ? #"{"exists":true}"# : #"{"exists":false}"#) }
        }
        PendingExistence(call, call.decode(id), on: collection).submit(in: collection)
    }

    func readMany(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard let parameter = call[.ids] else { return }
        let maximum = loop.limits.batch
        let ids = try call.strings(.ids, atMost: maximum + 1)
        guard ids.count <= maximum else { throw .limit("batch", maximum, "`ids` has more than \(maximum) elements") }
        call.session.spend(ids.count)
        var distinct: [JSONSlice] = []
        var decodedIDs: [[UInt8]] = []
        var seen = Set<[UInt8]>()
        for id in ids {
            let decoded = call.decode(id)
            if let violation = Naming.violation(decoded.span, maximum: Naming.maximumIDBytes) {
                throw Parameter.ids.invalid("has an id that \(violation)")
            }
            if seen.insert(decoded).inserted {
                distinct.append(id)
                decodedIDs.append(decoded)
            }
        }
        guard call.wantsReply else { return call.skip() }
        let text = call.copy(parameter)
        let sent = distinct.map { text[$0.start - parameter.start..<$0.end - parameter.start] }
        var result = RecordsResult(.records, sentIDs: sent, in: collection)
        if call.session.mayReadNow(collection), let key = collection.cacheKey {
            let isCached = call.replyIfAvailable { output throws(CRUDError) in
                let start = output.count
                let isCached = try result.appendCached(decodedIDs, key, by: records, to: &output)
                return isCached && hasRoom(for: output.count - start, in: output, of: call)
            }
            if isCached { return }
        }
        let limit = PendingRecordRead.limitBytes(in: collection, loop.limits)
        PendingRecordRead(
            call, collection, result, records,
            maximumBytes: call.grant(atLeast: Self.leastReplyBytes, atMost: limit), deliver
        ).submit(distinct, of: call, in: collection)
    }
}

/// A `record.exists` in flight.
private final class PendingExistence: PendingRead {
    private let recordedID: [UInt8]
    override var recordID: [UInt8]? { recordedID }

    init(_ call: borrowing Call, _ id: [UInt8], on collection: Collection) {
        recordedID = id
        super.init(call, .read, on: collection)
    }

    func submit(in collection: Collection) {
        start()
        submitAgain(withRoomFor: 0)
    }

    override func submitAgain(withRoomFor bytes: Int) {
        guard let collection else { return }
        let recordID = recordedID
        let id = collection.store.pendingReads(for: collection.stored).store(recordID.span)
        collection.store.submit(Read(.existence([id]), in: collection.stored), for: self)
    }

    override func append(_ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer) {
        output.append(records[0] == nil ? #"{"exists":false}"# : #"{"exists":true}"#)
    }
}
