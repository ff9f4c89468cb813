import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

extension Dispatcher {
    /// `record.create`, `record.update`, `record.upsert`, `record.patch` and `record.delete`: adds a mutation to the
    /// backend's batch.
    func mutate(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        guard let operation = Operation(request) else { return }
        try check(operation)
        let stored = try storedForm(of: operation, text, in: collection)
        let batch = loop.mutationBatch(for: collection)
        var context = RequestContext(
            session: session, collection: collection, traits: request.traits, target: target,
            id: request.id.map { batch.store(text.extracting($0.range)) }, deadline: deadline,
            heldBytes: target.size(of: text) + (stored?.count ?? 0))
        context.upserts = operation.upserts
        context.position = batch.mutations.count
        let budget = operation.kind == .patch ? budget(for: target) : nil
        batch.append(mutation(operation, stored, text, in: collection, batch, budget))
        start(context)
        loop.append(mutation: context)
    }

    /// The item of an operation in normal form, as its collection's format has it; nil where it is stored as it stands in
    /// the request, and where there is none yet.
    ///
    /// - Throws: `unsupported` where the format cannot hold it.
    func storedForm(
        of operation: Operation, _ text: Span<UInt8>, in collection: Collection
    ) throws(CRUDError) -> [UInt8]? {
        guard operation.kind != .patch, let range = operation.value?.range else { return nil }
        let normalized = normalization.normalized(text.extracting(range))
        guard !collection.codec.keepsText else { return normalized }
        var stored: [UInt8] = []
        if let normalized {
            try collection.codec.encode(item: normalized.span, into: &stored)
        } else {
            try collection.codec.encode(item: text.extracting(range), into: &stored)
        }
        return stored
    }

    /// - Throws: `limit_exceeded` for too long an item.
    func check(_ operation: Operation) throws(CRUDError) {
        let maximum = loop.limits.itemBytes
        guard operation.kind != .patch, let item = operation.value, item.count > maximum else { return }
        throw CRUDError(
            .limitExceeded, "the item is longer than \(maximum) bytes",
            details: .init(limit: "item_bytes", maximum: maximum))
    }

    /// The mutation that carries out an operation, its texts copied into the batch.
    ///
    /// - Parameters:
    ///   - stored: see ``storedForm(of:_:in:)``.
    ///   - budget: room for what a patch answers.
    func mutation(
        _ operation: Operation, _ stored: [UInt8]?, _ text: Span<UInt8>, in collection: Collection,
        _ batch: MutationBatch, _ budget: ReplyBudget?
    ) -> Mutation {
        let kind: Mutation.Kind =
            switch operation.kind {
            case .create, .update, .upsert, .patch: .put
            case .delete: .remove
            case .check: .check
            }
        var mutation = Mutation(
            kind, in: collection.stored, id: store(operation.id, text, in: batch),
            precondition: precondition(of: operation, text, in: batch))
        if kind == .put { mutation.revision = batch.store(revisions.next().span) }
        guard let value = operation.value else { return mutation }
        if let budget {
            mutation.transformation = Patch(
                text.extracting(value.range).copy(), codec: collection.codec, limits: loop.limits, budget: budget)
        } else {
            mutation.item = stored.map { batch.store($0.span) } ?? batch.store(text.extracting(value.range))
        }
        return mutation
    }

    private func precondition(
        of operation: Operation, _ text: Span<UInt8>, in batch: MutationBatch
    ) -> Mutation.Precondition {
        if let expected = operation.ifRevision {
            return expected.kind == .null ? .absent : .revision(store(expected, text, in: batch))
        }
        return switch operation.kind {
        case .create: .absent
        case .upsert: .any
        case .patch where operation.upserts: .any
        case .update, .delete, .patch, .check: .present
        }
    }

    /// Copies a string's value into a batch.
    private func store(_ string: JSONSlice, _ text: Span<UInt8>, in batch: MutationBatch) -> ByteArena.Place {
        guard string.hasEscapes else { return batch.store(text.extracting(string.content)) }
        return batch.store(string.decodedString(text).span)
    }

    /// Room for the items that the answer to the current request holds.
    func budget(for target: ReplyTarget) -> ReplyBudget {
        switch target {
        case .frame:
            let overhead = ReplyWriter.sizeWithoutItem + (request.id?.count ?? 0)
            return ReplyBudget(bytes: loop.limits.frameBytes - overhead)
        case .array(let array): return array.budget
        }
    }

    // MARK: Answers

    /// Answers a write whose outcome is there.
    func answer(_ context: RequestContext, of batch: MutationBatch) {
        if let part = context.part { return answer(context, part, of: batch) }
        guard let id = context.id, let kind = Operation.Kind(context.method) else { return }
        do throws(CRUDError) {
            loop.reply.beginResult(id: batch.arena.bytes(id))
            try write(kind, upserts: context.upserts, at: context.position, of: batch, context.collection.backend)
            loop.reply.end()
        } catch {
            loop.reply.error(error, id: batch.arena.bytes(id))
        }
        deliver(to: context.target, of: context.session)
    }

    /// Writes the result of a mutation into the reply.
    ///
    /// - Throws: what it came to instead.
    func write(
        _ kind: Operation.Kind, upserts: Bool, at index: Int, of batch: MutationBatch, _ backend: Backend
    ) throws(CRUDError) {
        switch batch.outcomes[index] {
        case .applied(let replaced):
            let mutation = batch.mutations[index]
            guard mutation.kind == .put else { return loop.reply.append("{}") }
            loop.reply.append(#"{"revision":""#)
            loop.reply.append(batch.arena.bytes(mutation.revision))
            loop.reply.append("\"")
            if kind == .upsert { loop.reply.append(replaced ? #","created":false"# : #","created":true"#) }
            if kind == .patch {
                loop.reply.append(#","item":"#)
                loop.reply.append(batch.shownItem(at: index))
            }
            loop.reply.append("}")
        case .exists: throw CRUDError(.recordExists, "there is a record with this id already")
        case .notFound:
            guard kind != .upsert, !upserts else { throw Self.mismatch(nil) }
            throw Self.recordNotFound
        case .mismatch(let current): throw Self.mismatch(String(decoding: current, as: UTF8.self))
        case .failed(let status): throw backend.error(status: status)
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
