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

    init(_ loop: LoopState, _ records: RecordWriter) {
        self.loop = loop
        self.records = records
    }

    /// `record.read`. Where the store can read at once, the record goes from the database's memory into the session's
    /// output; this is the path that has to be short.
    func read(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard let id = call[.id] else { return }
        if call[.fields] != nil { try QueryNodes.check(call) }
        let fields = try call.fields
        guard call.wantsReply else { return }
        let isRead = call.replyIfAvailable { output throws(CRUDError) in
            let start = output.count
            output.append(#"{"id":"#)
            output.append(call.text.span.extracting(id.range))
            let isRead = try call.withDecoded(id) { id throws(CRUDError) in
                try records.read(id, in: collection, fields, into: &output)
            }
            output.append(UInt8(ascii: "}"))
            let isLong = output.count - start > SessionAccount.modestBytes
            return isRead && (!isLong || call.array != nil || call.session.hasRoom(forOutput: output.count))
        }
        if isRead { return }
        let limit = limitBytes(in: collection)
        PendingRecord(
            call, collection, sentID: call.copy(id), fields, records,
            maximumBytes: call.array == nil ? min(limit, Self.firstRecordBytes) : limit, limitBytes: limit
        ).submit([id], of: call, in: collection)
    }

    /// How much room a record is given first; most take less.
    private static let firstRecordBytes = 32 << 10
    /// How much room several records are given at least.
    static let leastReplyBytes = 64 << 10

    /// How much a read may find: what a reply may have, and any record in its stored form.
    private func limitBytes(in collection: Collection) -> Int {
        let limits = loop.limits
        return max(limits.frameBytes, collection.codec.maximumStoredBytes(ofItem: limits.itemBytes))
    }

    func exists(_ call: borrowing Call, _ collection: Collection) {
        guard let id = call[.id], call.wantsReply else { return }
        PendingExistence(call, .read, on: collection).submit([id], of: call, in: collection) { ids in
            Read(.existence(ids), in: collection.stored)
        }
    }

    func readMany(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard let parameter = call[.ids] else { return }
        let maximum = loop.limits.batch
        let ids = try call.strings(.ids, atMost: maximum + 1)
        guard ids.count <= maximum else { throw .limit("batch", maximum, "`ids` has more than \(maximum) elements") }
        call.session.spend(ids.count)
        var distinct: [JSONSlice] = []
        var seen = Set<[UInt8]>()
        for id in ids {
            let decoded = call.decode(id)
            if let violation = Naming.violation(decoded.span, maximum: Naming.maximumIDBytes) {
                throw Parameter.ids.invalid("has an id that \(violation)")
            }
            if seen.insert(decoded).inserted { distinct.append(id) }
        }
        guard call.wantsReply else { return }
        let text = call.copy(parameter)
        let sent = distinct.map { text[$0.start - parameter.start..<$0.end - parameter.start] }
        let limit = limitBytes(in: collection)
        PendingRecords(
            call, collection, sentIDs: sent, records,
            maximumBytes: call.grant(atLeast: Self.leastReplyBytes, atMost: limit), limitBytes: limit
        ).submit(distinct, of: call, in: collection)
    }
}

/// A `record.read` in flight.
private final class PendingRecord: PendingRecordRead {
    private let fields: FieldProjection?
    private let writer: RecordWriter

    init(
        _ call: borrowing Call, _ collection: Collection, sentID: [UInt8], _ fields: FieldProjection?,
        _ writer: RecordWriter, maximumBytes: Int, limitBytes: Int
    ) {
        self.fields = fields
        self.writer = writer
        super.init(call, collection, sentIDs: [sentID[...]], maximumBytes: maximumBytes, limitBytes: limitBytes)
    }

    override func append(
        _ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer
    ) throws(CRUDError) {
        guard let collection, let record = records[0] else {
            throw .recordNotFound(id(0), in: collection?.name ?? [])
        }
        let sentID = sentIDs[0]
        output.append(#"{"id":"#)
        output.append(sentID.span)
        do throws(CRUDError) {
            try writer.append(
                batch.found(record.item), batch.found(record.revision), collection.codec, fields, to: &output)
        } catch {
            if error.code == .corrupt { collection.note(corrupt: id(0)) }
            throw error.about(id(0), in: collection.name)
        }
        output.append(UInt8(ascii: "}"))
    }
}

/// A `record.exists` in flight.
private final class PendingExistence: PendingRead {
    override func append(_ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer) {
        output.append(records[0] == nil ? #"{"exists":false}"# : #"{"exists":true}"#)
    }
}

/// A `record.readMany` in flight.
private final class PendingRecords: PendingRecordRead {
    private let writer: RecordWriter

    init(
        _ call: borrowing Call, _ collection: Collection, sentIDs: [ArraySlice<UInt8>], _ writer: RecordWriter,
        maximumBytes: Int, limitBytes: Int
    ) {
        self.writer = writer
        super.init(call, collection, sentIDs: sentIDs, maximumBytes: maximumBytes, limitBytes: limitBytes)
    }

    override func append(
        _ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer
    ) throws(CRUDError) {
        guard let codec = collection?.codec else { return }
        var missing: [ArraySlice<UInt8>] = []
        var corrupt: [ArraySlice<UInt8>] = []
        output.append(#"{"records":["#)
        var isFirst = true
        for (index, (id, record)) in zip(sentIDs, records).enumerated() {
            guard let record else {
                missing.append(id)
                continue
            }
            let start = output.count
            output.append(isFirst ? #"{"id":"# : #",{"id":"#)
            output.append(id.span)
            do throws(CRUDError) {
                try writer.append(batch.found(record.item), batch.found(record.revision), codec, nil, to: &output)
                output.append(UInt8(ascii: "}"))
                isFirst = false
            } catch {
                guard error.code == .corrupt else { throw error }
                output.truncate(to: start)
                corrupt.append(id)
                collection?.note(corrupt: self.id(index))
            }
        }
        output.append(#"],"missing":"#)
        output.appendArray(ofStrings: missing)
        if !corrupt.isEmpty {
            output.append(#","corrupt":"#)
            output.appendArray(ofStrings: corrupt.prefix(Self.maximumCorrupt))
        }
        output.append(UInt8(ascii: "}"))
    }

    private static let maximumCorrupt = 100
}
