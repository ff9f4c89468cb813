import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

extension Dispatcher {
    /// `record.read`. Without `fields`, on a backend that the loop reads itself, the record goes from the database's
    /// memory into the reply; this is the path that has to be short.
    func read(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        guard let recordID = request[.id] else { return }
        guard request[.fields] == nil, !recordID.hasEscapes, let reader = loop.reader(for: collection) else {
            let projection = try projection(text)
            return try submit(.records, [recordID], collection, text, session, target, projection)
        }
        guard let id = request.id, session.isListenedTo else { return }
        let reply = loop.reply
        reply.beginRecord(id: text.extracting(id.range), recordID: text.extracting(recordID.range))
        recordReply.begin(collection.codec)
        try reader.read(text.extracting(recordID.content), in: collection.stored, into: recordReply)
        guard try recordReply.foundRecord() else { throw Self.recordNotFound }
        reply.append("}}")
        try checkSize(for: target)
        deliver(to: target, of: session)
    }

    /// `record.exists`.
    func exists(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        guard let recordID = request[.id] else { return }
        try submit(.existence, [recordID], collection, text, session, target)
    }

    /// `record.readMany`.
    func readMany(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        let recordIDs = try strings(.ids, text)
        let maximum = loop.limits.batch
        guard recordIDs.count <= maximum else {
            throw CRUDError(
                .limitExceeded, "`ids` has more than \(maximum) elements",
                details: .init(limit: "batch", maximum: maximum))
        }
        session.spend(recordIDs.count)
        for recordID in recordIDs {
            let fault = Naming.fault(recordID.decodedString(text).span, maximum: Naming.maximumIDBytes)
            if let fault { throw Parameter.ids.fault("has an id that \(fault)") }
        }
        var seen = Set<[UInt8]>()
        let distinct = recordIDs.filter { seen.insert($0.decodedString(text)).inserted }
        try submit(.records, distinct, collection, text, session, target)
    }

    /// `collection.describe`.
    func describe(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        try submit(.count, [], collection, text, session, target)
    }

    /// Counts records without looking into them.
    func submitCount(
        _ prefix: [UInt8], _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        try submit(.count, [], collection, text, session, target, prefix: prefix)
    }

    // MARK: Parameters

    /// What part of items the request wants; nil for the whole.
    func projection(_ text: Span<UInt8>) throws(CRUDError) -> FieldProjection? {
        guard request[.fields] != nil else { return nil }
        var projection = FieldProjection()
        for path in try strings(.fields, text) {
            do throws(FieldProjection.PathFault) {
                try projection.insert(path: path.decodedString(text))
            } catch {
                throw Parameter.fields.fault("has a path with a backslash before neither a dot nor a backslash")
            }
        }
        return projection
    }

    /// The elements of a parameter that is an array of strings.
    private func strings(_ parameter: Parameter, _ text: Span<UInt8>) throws(CRUDError) -> [JSONSlice] {
        guard let strings = request[parameter]?.elements(text) else { return [] }
        guard strings.allSatisfy({ $0.kind == .string }) else { throw parameter.fault("must be an array of strings") }
        return strings
    }

    // MARK: Reading by way of a batch

    private enum ReadKind {
        case records, existence, count
    }

    /// Has a read carried out: at once if the loop reads the backend itself, else by the backend's own thread.
    private func submit(
        _ kind: ReadKind, _ recordIDs: [JSONSlice], _ collection: Collection, _ text: Span<UInt8>, _ session: Session,
        _ target: ReplyTarget, _ projection: FieldProjection? = nil, prefix: [UInt8] = []
    ) throws(CRUDError) {
        guard request.id != nil, session.isListenedTo else { return }
        // Counting walks an index, which may take a while: never on the loop.
        let reader = kind == .count ? nil : loop.reader(for: collection)
        let batch = reader == nil ? loop.readBatch(for: collection) : ReadBatch { _ in }
        let places = recordIDs.map { batch.store($0.decodedString(text).span) }
        var context = RequestContext(
            session: session, collection: collection, traits: request.traits, target: target,
            id: request.id.map { batch.store(text.extracting($0.range)) }, deadline: deadline,
            heldBytes: target.size(of: text),
            recordIDs: recordIDs.map { batch.store(text.extracting($0.range)) }, projection: projection)
        var read: Read =
            switch kind {
            case .records:
                Read(
                    .records(places), in: collection.stored,
                    maximumBytes: max(
                        loop.limits.frameBytes, collection.codec.maximumStoredBytes(ofItem: loop.limits.itemBytes)))
            case .existence: Read(.existence(places), in: collection.stored)
            case .count: Read(.count, in: collection.stored)
            }
        if kind == .count { read.prefix = batch.store(prefix.span) }
        context.position = batch.reads.count
        batch.append(read)
        if let reader {
            reader.carryOut(batch)
            answer(context, with: batch.results[0], of: batch)
        } else {
            start(context)
            loop.append(read: context)
        }
    }

    /// Counts a request that is being handed to a backend.
    func start(_ context: RequestContext) {
        context.session.started(context)
        if case .array(let array) = context.target { array.started(context.kind, on: context.collection.backend) }
    }

    // MARK: Answers

    /// Answers a read whose result is there.
    func answer(_ context: RequestContext, with result: ReadResult, of batch: ReadBatch) {
        guard let id = context.id else { return }
        do throws(CRUDError) {
            loop.reply.beginResult(id: batch.arena.bytes(id))
            switch result {
            case .failed(let error): throw error
            case .tooLong: throw replyTooLong
            case .count(let count) where context.method == .recordCount: writeMember("count", count)
            case .count(let count): writeDescription(of: context.collection, count: count)
            case .records(let records):
                switch context.method {
                case .recordExists: loop.reply.append(records[0] == nil ? #"{"exists":false}"# : #"{"exists":true}"#)
                case .recordReadMany: try writeRecords(records, context, batch)
                default:
                    guard let record = records[0] else { throw Self.recordNotFound }
                    try writeRecord(record, context.recordIDs[0], context, batch)
                }
            }
            loop.reply.end()
            try checkSize(for: context.target)
        } catch {
            loop.reply.error(error, id: batch.arena.bytes(id))
        }
        deliver(to: context.target, of: context.session)
    }

    static let recordNotFound = CRUDError(.recordNotFound, "there is no record with this id")

    private func writeRecord(
        _ record: FoundRecord, _ recordID: ByteArena.Place, _ context: RequestContext, _ batch: ReadBatch
    ) throws(CRUDError) {
        loop.reply.append(#"{"id":"#)
        loop.reply.append(batch.arena.bytes(recordID))
        recordReply.begin(context.collection.codec, projection: context.projection)
        _ = recordReply.receive(
            index: 0, item: batch.found.bytes(record.item), revision: batch.found.bytes(record.revision))
        _ = try recordReply.foundRecord()
        loop.reply.append("}")
    }

    /// `{records, missing}`.
    private func writeRecords(
        _ records: [FoundRecord?], _ context: RequestContext, _ batch: ReadBatch
    ) throws(CRUDError) {
        loop.reply.append(#"{"records":["#)
        var isFirst = true
        for (index, record) in records.enumerated() {
            guard let record else { continue }
            if !isFirst { loop.reply.append(",") }
            isFirst = false
            try writeRecord(record, context.recordIDs[index], context, batch)
        }
        loop.reply.append(#"],"missing":["#)
        isFirst = true
        for index in records.indices where records[index] == nil {
            if !isFirst { loop.reply.append(",") }
            isFirst = false
            loop.reply.append(batch.arena.bytes(context.recordIDs[index]))
        }
        loop.reply.append("]}")
    }

    /// A reply that is longer than a frame may be is an error instead.
    func checkSize(for target: ReplyTarget) throws(CRUDError) {
        if loop.reply.count > room(for: target) { throw replyTooLong }
    }

    /// How long a reply may be.
    func room(for target: ReplyTarget) -> Int {
        switch target {
        case .frame: loop.limits.frameBytes
        case .array(let array): array.room
        }
    }
}
