import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

/// `record.batch`.
///
/// Its operations are read and checked before anything is done. Those on one backend become mutations of one batch, so
/// that they run in order and see each other; with `atomic: true` the batch is one of its own.
extension Dispatcher {
    /// An operation and the collection that it concerns, or why it is not carried out.
    private struct Assignment {
        let operation: Operation
        var stored: [UInt8]?
        let collection: Result<Collection, CRUDError>
    }

    func batch(
        _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget, hasWaited: Bool
    ) throws(CRUDError) -> Disposition {
        let isAtomic = request[.atomic]?.kind == .true
        let assignments = try assignments(text, for: session)
        if isAtomic { try checkAtomicity(of: assignments) }
        var collections: [Collection] = []
        for case .success(let collection) in assignments.map(\.collection)
        where !collections.contains(where: { $0 === collection }) {
            collections.append(collection)
        }
        let backend = collections.first?.backend
        let isOne = collections.allSatisfy { $0.backend === backend }
        guard target.admits(.write, on: isOne ? backend : nil) else { return .mustWaitForArray }
        guard collections.allSatisfy({ session.admits(.write, on: $0, hasWaited: hasWaited) }) else {
            return .mustWait(collections, .write)
        }
        session.spend(assignments.count)
        try start(assignments, collections, text, session, target, isAtomic: isAtomic)
        return .takenUp
    }

    // MARK: Checking

    /// Reads the operations.
    ///
    /// - Throws: `invalid_params` for a malformed one and `limit_exceeded`, with its index.
    private func assignments(_ text: Span<UInt8>, for session: Session) throws(CRUDError) -> [Assignment] {
        guard let elements = request[.operations]?.elements(text) else { return [] }
        let maximum = loop.limits.batch
        guard elements.count <= maximum else {
            throw CRUDError(
                .limitExceeded, "`operations` has more than \(maximum) elements",
                details: .init(limit: "batch", maximum: maximum))
        }
        var operations: [Operation] = []
        for (index, element) in elements.enumerated() {
            do throws(CRUDError) {
                let operation = try Operation(element, of: text, maximumDepth: loop.limits.jsonDepth)
                try check(operation)
                operations.append(operation)
            } catch {
                throw error.at(index)
            }
        }
        return operations.map { operation in
            do throws(CRUDError) {
                let collection = try find(operation.collection, text, for: session, to: operation.kind.access)
                let stored = try storedForm(of: operation, text, in: collection)
                return Assignment(operation: operation, stored: stored, collection: .success(collection))
            } catch {
                return Assignment(operation: operation, collection: .failure(error))
            }
        }
    }

    /// - Throws: the first operation's error that cannot be carried out; `unsupported` if no backend can carry out all.
    private func checkAtomicity(of assignments: [Assignment]) throws(CRUDError) {
        var backend: Backend?
        for (index, assignment) in assignments.enumerated() {
            do throws(CRUDError) {
                let collection = try assignment.collection.get()
                guard backend == nil || backend === collection.backend else {
                    throw CRUDError(.unsupported, "the collections of an atomic batch must live in one backend")
                }
                guard collection.backend.capabilities.contains(.transactions) else {
                    throw CRUDError(.unsupported, "backend \(collection.backend.name) has no transactions")
                }
                backend = collection.backend
            } catch {
                throw error.at(index)
            }
        }
    }

    // MARK: Starting

    private func start(
        _ assignments: [Assignment], _ collections: [Collection], _ text: Span<UInt8>, _ session: Session,
        _ target: ReplyTarget, isAtomic: Bool
    ) throws(CRUDError) {
        let budget = budget(for: target)
        guard budget.take(assignments.count * ReplyWriter.sizeWithoutItem) else { throw replyTooLong }
        let execution = OperationsExecution(
            id: request.id.map { text.extracting($0.range).copy() }, target: target, isAtomic: isAtomic,
            count: assignments.count)
        for (index, assignment) in assignments.enumerated() {
            if case .failure(let error) = assignment.collection { execution.settle(index, entry(error)) }
        }
        guard !collections.isEmpty else { return answer(execution, session) }
        // Each backend's collections together, in the order of the request.
        var rest = collections
        var heldBytes = target.size(of: text)
        while let backend = rest.first?.backend {
            let own = rest.filter { $0.backend === backend }
            rest.removeAll { $0.backend === backend }
            start(execution, assignments, own, text, session, budget, heldBytes: heldBytes)
            heldBytes = 0
        }
    }

    /// Hands one backend its operations.
    private func start(
        _ execution: OperationsExecution, _ assignments: [Assignment], _ collections: [Collection],
        _ text: Span<UInt8>, _ session: Session, _ budget: ReplyBudget, heldBytes: Int
    ) {
        let batch =
            execution.isAtomic
            ? MutationBatch(isAtomic: true) { [mailbox = loop.mailbox] in mailbox.post(.completed($0)) }
            : loop.mutationBatch(for: collections[0])
        let position = batch.mutations.count
        var members: [OperationsPart.Member] = []
        for (index, assignment) in assignments.enumerated() {
            guard case .success(let collection) = assignment.collection,
                collection.backend === collections[0].backend
            else { continue }
            let operation = assignment.operation
            members.append(.init(index: index, kind: operation.kind, upserts: operation.upserts))
            batch.append(
                mutation(
                    operation, assignment.stored, text, in: collection, batch, operation.kind == .patch ? budget : nil))
        }
        var context = RequestContext(
            session: session, collection: collections[0], otherCollections: Array(collections.dropFirst()),
            traits: request.traits, target: execution.target,
            id: execution.id.map { batch.store($0.span) }, deadline: deadline, heldBytes: heldBytes)
        context.part = OperationsPart(execution: execution, operations: members)
        context.position = position
        execution.started()
        start(context)
        if execution.isAtomic {
            loop.append(.mutations(batch), for: context)
        } else {
            loop.append(mutation: context)
        }
    }

    // MARK: Answers

    /// Takes in what a backend has made of its part of a `record.batch`.
    func answer(_ context: RequestContext, _ part: OperationsPart, of batch: MutationBatch) {
        let execution = part.execution
        for (offset, member) in part.operations.enumerated() {
            let index = context.position + offset
            do throws(CRUDError) {
                loop.reply.beginEntry()
                try write(member.kind, upserts: member.upserts, at: index, of: batch, context.collection.backend)
                loop.reply.end()
                execution.settle(member.index, loop.reply.copy())
            } catch {
                if execution.isAtomic { return fail(context, part, error.at(member.index)) }
                execution.settle(member.index, entry(error))
            }
        }
        if execution.ended() { answer(execution, context.session) }
    }

    /// Takes in that a backend could not carry out its part, or not in time.
    ///
    /// - Parameter isOverdue: with nothing else to wait for, the request as a whole has waited long enough.
    func answer(_ context: RequestContext, _ part: OperationsPart, with error: CRUDError, isOverdue: Bool) {
        let execution = part.execution
        if execution.isAtomic || (isOverdue && execution.isWhole) { return fail(context, part, error) }
        let entry = entry(error)
        for member in part.operations { execution.settle(member.index, entry) }
        if execution.ended() { answer(execution, context.session) }
    }

    /// The call fails.
    private func fail(_ context: RequestContext, _ part: OperationsPart, _ error: CRUDError) {
        guard let id = part.execution.id else { return }
        loop.reply.error(error, id: id.span)
        deliver(to: context.target, of: context.session)
    }

    private func entry(_ error: CRUDError) -> [UInt8] {
        loop.reply.errorEntry(error)
        return loop.reply.copy()
    }

    /// Answers a request of which everything is known.
    private func answer(_ execution: OperationsExecution, _ session: Session) {
        guard let id = execution.id else { return }
        loop.reply.beginResult(id: id.span)
        loop.reply.append(#"{"results":["#)
        for (index, entry) in execution.entries.enumerated() {
            if index > 0 { loop.reply.append(",") }
            loop.reply.append(entry.span)
        }
        loop.reply.append("]}")
        loop.reply.end()
        deliver(to: execution.target, of: session)
    }
}

extension CRUDError {
    /// The error of the operation at `index`.
    fileprivate func at(_ index: Int) -> CRUDError {
        var error = self
        error.details.index = index
        return error
    }
}
