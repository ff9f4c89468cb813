import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

extension Dispatcher {
    /// `record.create`, `record.update`, `record.upsert` and `record.delete`: adds a mutation to the backend's batch.
    func mutate(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        guard let recordID = request[.id] else { return }
        let item = request[.item]
        var stored: [UInt8]?
        if let item {
            try checkSize(of: item)
            stored = try storedForm(of: text.extracting(item.range), in: collection)
        }
        let batch = loop.mutationBatch(for: collection)
        let mutation = Mutation(
            request.method == .recordDelete ? .remove : .put, in: collection.stored,
            id: store(recordID, text, in: batch), precondition: precondition(text, in: batch),
            item: stored.map { batch.store($0.span) } ?? item.map { batch.store(text.extracting($0.range)) } ?? .empty,
            revision: request.method == .recordDelete ? .empty : batch.store(revisions.next().span))
        let context = RequestContext(
            session: session, collection: collection, traits: request.traits, target: target,
            id: request.id.map { batch.store(text.extracting($0.range)) }, deadline: deadline,
            heldBytes: target.size(of: text) + (stored?.count ?? 0))
        batch.append(mutation)
        start(context)
        loop.append(mutation: context)
    }

    /// An item in normal form as its collection's format has it; nil where it is stored as it stands in the request.
    private func storedForm(of item: Span<UInt8>, in collection: Collection) throws(CRUDError) -> [UInt8]? {
        let normalized = normalization.normalized(item)
        guard !collection.codec.keepsText else { return normalized }
        var stored: [UInt8] = []
        if let normalized {
            try collection.codec.encode(item: normalized.span, into: &stored)
        } else {
            try collection.codec.encode(item: item, into: &stored)
        }
        return stored
    }

    private func checkSize(of item: JSONSlice) throws(CRUDError) {
        let maximum = loop.limits.itemBytes
        guard item.count > maximum else { return }
        throw CRUDError(
            .limitExceeded, "the item is longer than \(maximum) bytes",
            details: .init(limit: "item_bytes", maximum: maximum))
    }

    private func precondition(_ text: Span<UInt8>, in batch: MutationBatch) -> Mutation.Precondition {
        if let expected = request[.ifRevision] { return .revision(store(expected, text, in: batch)) }
        return switch request.method {
        case .recordCreate: .absent
        case .recordUpsert: .any
        default: .present
        }
    }

    /// Copies a string's value into a batch.
    private func store(_ string: JSONSlice, _ text: Span<UInt8>, in batch: MutationBatch) -> ByteArena.Place {
        guard string.hasEscapes else { return batch.store(text.extracting(string.content)) }
        return batch.store(string.decodedString(text).span)
    }

    // MARK: Answers

    /// Answers a write whose outcome is there.
    func answer(_ context: RequestContext, _ mutation: Mutation, with outcome: MutationOutcome, of batch: MutationBatch)
    {
        guard let id = context.id else { return }
        do throws(CRUDError) {
            loop.reply.beginResult(id: batch.arena.bytes(id))
            try write(outcome, context, mutation, batch)
            loop.reply.end()
        } catch {
            loop.reply.error(error, id: batch.arena.bytes(id))
        }
        deliver(to: context.target, of: context.session)
    }

    private func write(
        _ outcome: MutationOutcome, _ context: RequestContext, _ mutation: Mutation, _ batch: MutationBatch
    ) throws(CRUDError) {
        switch outcome {
        case .applied(let replaced):
            guard mutation.kind == .put else { return loop.reply.append("{}") }
            loop.reply.append(#"{"revision":""#)
            loop.reply.append(batch.arena.bytes(mutation.revision))
            loop.reply.append("\"")
            if context.method == .recordUpsert {
                loop.reply.append(replaced ? #","created":false"# : #","created":true"#)
            }
            loop.reply.append("}")
        case .exists: throw CRUDError(.recordExists, "there is a record with this id already")
        case .notFound:
            guard context.method != .recordUpsert else { throw Self.mismatch(nil) }
            throw Self.recordNotFound
        case .mismatch(let current): throw Self.mismatch(String(decoding: current, as: UTF8.self))
        case .failed(let status): throw context.collection.backend.error(status: status)
        case .refused(let error): throw error
        }
    }

    private static func mismatch(_ current: String?) -> CRUDError {
        CRUDError(
            .revisionMismatch, current == nil ? "there is no record with this id" : "the record has another revision",
            details: .init(revision: current))
    }

    /// Answers a request that a backend could not carry out, or not in time.
    func answer(_ context: RequestContext, with error: CRUDError, id: UnsafeRawBufferPointer) {
        loop.reply.error(error, id: id)
        deliver(to: context.target, of: context.session)
    }
}
