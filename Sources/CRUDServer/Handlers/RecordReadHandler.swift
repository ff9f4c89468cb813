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
        let fields = try call.fields
        guard call.wantsReply else { return }
        let isRead = call.replyIfAvailable { output throws(CRUDError) in
            output.append(#"{"id":"#)
            output.append(call.text.span.extracting(id.range))
            let isRead = try call.withDecoded(id) { id throws(CRUDError) in
                try records.read(id, in: collection, fields, into: &output)
            }
            output.append(UInt8(ascii: "}"))
            return isRead
        }
        if isRead { return }
        let pending = PendingRecord(call, collection, sentID: call.copy(id), fields, records)
        pending.submit([id], of: call, in: collection) { recordRead($0, in: collection) }
    }

    func exists(_ call: borrowing Call, _ collection: Collection) {
        guard let id = call[.id], call.wantsReply else { return }
        PendingExistence(call, .read, on: collection).submit([id], of: call, in: collection) { ids in
            Read(.existence(ids), in: collection.stored)
        }
    }

    func readMany(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard let parameter = call[.ids] else { return }
        let ids = try call.strings(.ids)
        let maximum = loop.limits.batch
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
        PendingRecords(call, collection, sentIDs: sent, records)
            .submit(distinct, of: call, in: collection) { recordRead($0, in: collection) }
    }

    private func recordRead(_ ids: [ByteArena.Place], in collection: Collection) -> Read {
        let limits = loop.limits
        return Read(
            .records(ids), in: collection.stored,
            maximumBytes: max(limits.frameBytes, collection.codec.maximumStoredBytes(ofItem: limits.itemBytes)))
    }
}

/// A `record.read` in flight.
private final class PendingRecord: PendingRead {
    private let sentID: [UInt8]
    private let fields: FieldProjection?
    private let writer: RecordWriter

    init(
        _ call: borrowing Call, _ collection: Collection, sentID: [UInt8], _ fields: FieldProjection?,
        _ writer: RecordWriter
    ) {
        self.sentID = sentID
        self.fields = fields
        self.writer = writer
        super.init(call, .read, on: collection)
    }

    override func append(
        _ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer
    ) throws(CRUDError) {
        guard let record = records[0], let collection else { throw .recordNotFound }
        let sentID = sentID
        output.append(#"{"id":"#)
        output.append(sentID.span)
        do throws(CRUDError) {
            try writer.append(
                batch.found(record.item), batch.found(record.revision), collection.codec, fields, to: &output)
        } catch {
            if error.code == .corrupt { writer.note(corrupt: sentID, in: collection) }
            throw error
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
private final class PendingRecords: PendingRead {
    private let sentIDs: [ArraySlice<UInt8>]
    private let writer: RecordWriter

    init(
        _ call: borrowing Call, _ collection: Collection, sentIDs: [ArraySlice<UInt8>], _ writer: RecordWriter
    ) {
        self.sentIDs = sentIDs
        self.writer = writer
        super.init(call, .read, on: collection)
    }

    override func append(
        _ records: [StoredRecord?], of batch: ReadBatch, to output: inout StreamBuffer
    ) throws(CRUDError) {
        guard let codec = collection?.codec else { return }
        var missing: [ArraySlice<UInt8>] = []
        var corrupt: [ArraySlice<UInt8>] = []
        output.append(#"{"records":["#)
        var isFirst = true
        for (id, record) in zip(sentIDs, records) {
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
                writer.note(corrupt: id, in: collection)
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
