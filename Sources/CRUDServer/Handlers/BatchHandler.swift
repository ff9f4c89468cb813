import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// `record.batch`.
///
/// Its operations are read and checked before anything is done. Those on one backend become mutations of one batch, so
/// that they run in order and see each other; with `atomic: true` the batch is one of its own.
final class BatchHandler {
    private let loop: LoopState
    private let collections: CollectionDirectory
    private let encoder: MutationEncoder

    init(_ loop: LoopState, _ collections: CollectionDirectory, _ encoder: MutationEncoder) {
        self.loop = loop
        self.collections = collections
        self.encoder = encoder
    }

    /// An operation, and the collection that it concerns or why it is not executed.
    private struct Assignment {
        let operation: Operation
        let target: Result<(collection: Collection, item: MutationEncoder.Item), CRUDError>

        var collection: Collection? { try? target.get().collection }
    }

    func execute(_ call: borrowing Call) throws(CRUDError) -> Disposition {
        let isAtomic = call.isTrue(.atomic)
        let assignments = try assignments(of: call)
        if isAtomic { try checkAtomicity(of: assignments) }
        var used: [Collection] = []
        for case .some(let collection) in assignments.map(\.collection)
        where !used.contains(where: { $0 === collection }) {
            used.append(collection)
        }
        let client = used.first?.client
        let isOneBackend = used.allSatisfy { $0.client === client }
        if let array = call.array, !array.admits(.write, on: isOneBackend ? client : nil) { return .mustWaitForArray }
        for collection in used where !call.session.admits(.write, on: collection, hasWaited: call.hasWaited) {
            return .mustWait(used, .write)
        }
        call.session.spend(assignments.count)
        try start(assignments, used, call, isAtomic: isAtomic)
        return .accepted
    }

    // MARK: Checking

    /// Reads the operations.
    ///
    /// - Throws: `invalid_params` for a malformed one and `limit_exceeded`, with its index.
    private func assignments(of call: borrowing Call) throws(CRUDError) -> [Assignment] {
        let text = call.text.span
        guard let elements = call[.operations]?.elements(text) else { return [] }
        let maximum = loop.limits.batch
        guard elements.count <= maximum else {
            throw .limit("batch", maximum, "`operations` has more than \(maximum) elements")
        }
        var operations: [Operation] = []
        for (index, element) in elements.enumerated() {
            do throws(CRUDError) {
                let operation = try Operation(element, of: text, maximumDepth: loop.limits.jsonDepth)
                try encoder.check(operation)
                operations.append(operation)
            } catch {
                throw error.at(index)
            }
        }
        var assignments: [Assignment] = []
        for operation in operations {
            do throws(CRUDError) {
                let collection = try collections.find(operation.collection, call, to: operation.kind.access)
                let item = try encoder.prepare(operation, call, for: collection)
                assignments.append(Assignment(operation: operation, target: .success((collection, item))))
            } catch {
                assignments.append(Assignment(operation: operation, target: .failure(error)))
            }
        }
        return assignments
    }

    /// - Throws: the error of the first operation that cannot be executed; `unsupported` if no backend can execute all.
    private func checkAtomicity(of assignments: [Assignment]) throws(CRUDError) {
        var backend: Backend?
        for (index, assignment) in assignments.enumerated() {
            do throws(CRUDError) {
                let collection = try assignment.target.get().collection
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
        _ assignments: [Assignment], _ used: [Collection], _ call: borrowing Call, isAtomic: Bool
    ) throws(CRUDError) {
        let budget = call.budget(loop.limits)
        guard budget.take(assignments.count * StreamBuffer.responseBytesWithoutItem) else {
            throw .replyTooLong(maximumBytes: loop.limits.frameBytes)
        }
        let results = BatchResults(isAtomic: isAtomic, assignments.map { OperationReply(to: $0.operation) })
        for (index, assignment) in assignments.enumerated() {
            if case .failure(let error) = assignment.target { results.outcomes[index] = .failed(error) }
        }
        guard !used.isEmpty else {
            return call.reply { output throws(CRUDError) in try results.append(to: &output) }
        }
        // Each backend's collections together, in the order of the request.
        var parts: [[Collection]] = []
        for collection in used {
            if let part = parts.firstIndex(where: { $0[0].client === collection.client }) {
                parts[part].append(collection)
            } else {
                parts.append([collection])
            }
        }
        results.expectParts(parts.count)
        for (number, collections) in parts.enumerated() {
            submit(assignments, collections, call, results, budget, isCharged: number == 0)
        }
    }

    /// Hands one backend its operations.
    ///
    /// - Parameter isCharged: whether the session is charged for the request's text with this part.
    private func submit(
        _ assignments: [Assignment], _ collections: [Collection], _ call: borrowing Call, _ results: BatchResults,
        _ budget: ReplyBudget, isCharged: Bool
    ) {
        let client = collections[0].client
        let batch =
            results.isAtomic ? MutationBatch(isAtomic: true, deliver: client.deliver) : client.pendingMutations
        var positions: [Int] = []
        var mutations: [Mutation] = []
        var chargedBytes = isCharged ? call.chargedBytes : 0
        for (position, assignment) in assignments.enumerated() {
            guard case .success(let (collection, item)) = assignment.target, collection.client === client else {
                continue
            }
            positions.append(position)
            chargedBytes += item.count
            mutations.append(encoder.mutation(assignment.operation, item, call, in: collection, batch, budget))
        }
        let pending = PendingOperations(call, collections, results, positions, chargedBytes: chargedBytes)
        pending.start()
        if results.isAtomic {
            client.submit(atomic: batch, mutations, for: pending)
        } else {
            client.append(mutations, for: pending)
        }
    }
}

extension CRUDError {
    /// The error of the operation at `index`.
    func at(_ index: Int) -> CRUDError {
        var error = self
        error.details.index = index
        return error
    }
}
