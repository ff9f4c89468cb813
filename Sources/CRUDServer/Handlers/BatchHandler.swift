import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire

/// `record.batch`.
///
/// Its operations are read and checked before anything is done, and their items encoded when it may start. Those on one
/// backend become mutations of one batch, so that they run in order and see each other; with `atomic: true` the batch
/// is one of its own.
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
    }

    func execute(_ call: borrowing Call) throws(CRUDError) -> Disposition {
        let operations = if let read = call.operations { read } else { try operations(of: call) }
        let targets = operations.map { find($0, call) }
        var places = ObjectIndex<Collection>()
        for case .success(let collection) in targets where places[collection] == nil { places.append(collection) }
        let used = places.objects
        let isAtomic = call.isTrue(.atomic)
        let isLong = !isAtomic && isLong(operations, targets)
        let replyBytes = replyBytes(to: operations) + (isLong ? loop.limits.longWriteBytes : 0)
        let kind = isLong ? RequestKind.slicedWrite : .write
        if let wait = wait(kind, for: used, operations, call, replyBytes: replyBytes) { return wait }
        let assignments = assignments(operations, targets, call)
        if isAtomic { try checkAtomicity(of: assignments, call) }
        call.session.spend(assignments.count)
        call.session.authority.rate?.charge(assignments.count - 1, at: loop.nowNanoseconds)
        for collection in used { collection.countRequest() }
        try start(assignments, kind, used, call, isAtomic: isAtomic, replyBytes: replyBytes)
        return .accepted
    }

    // MARK: Waiting

    /// How much room the reply needs.
    private func replyBytes(to operations: [Operation]) -> Int {
        let limits = loop.limits
        let patches = operations.count { $0.kind == .patch }
        return min(
            limits.frameBytes, operations.count * StreamBuffer.responseBytesWithoutItem + patches * limits.itemBytes)
    }

    /// Whether it takes long to make the item of an operation.
    private func isLong(_ operations: [Operation], _ targets: [Result<Collection, CRUDError>]) -> Bool {
        zip(operations, targets).contains { operation, target in
            guard case .success(let collection) = target else { return false }
            return collection.takesLong(isPatch: operation.kind == .patch, contentBytes: operation.contentBytes)
        }
    }

    /// Why the call has to wait; nil where it may start.
    private func wait(
        _ kind: RequestKind, for used: [Collection], _ operations: [Operation], _ call: borrowing Call, replyBytes: Int
    ) -> Disposition? {
        if let array = call.array {
            let client = used.first?.client
            let isOneBackend = used.allSatisfy { $0.client === client }
            let isAdmitted =
                array.admits(kind, on: isOneBackend ? client : nil)
                && used.allSatisfy { call.session.admits(kind, on: $0, hasWaited: false) }
            return isAdmitted ? nil : .mustWaitForArray(operations)
        }
        for collection in used where !call.session.admits(kind, on: collection, hasWaited: call.hasWaited) {
            return .mustWait(Wait(collections: used, kind: kind, neededBytes: replyBytes, operations: operations))
        }
        // What uses no collection has no place where it could wait, and a short reply.
        guard !used.isEmpty, !call.session.hasRoom(for: replyBytes) else { return nil }
        return .mustWait(Wait(collections: used, kind: kind, neededBytes: replyBytes, operations: operations))
    }

    // MARK: Checking

    /// Reads the operations.
    ///
    /// - Throws: `invalid_params` for a malformed one and `limit_exceeded`, with its index.
    private func operations(of call: borrowing Call) throws(CRUDError) -> [Operation] {
        // Once for each request, however often it has to wait.
        if loop.logsRequests { call.session.trace("the operations of a record.batch are read") }
        let text = call.text.span
        let maximum = loop.limits.batch
        guard let elements = call[.operations]?.elements(text, atMost: maximum + 1) else { return [] }
        guard elements.count <= maximum else {
            throw .limit("batch", maximum, "`operations` has more than \(maximum) elements")
        }
        var operations: [Operation] = []
        for (index, element) in elements.enumerated() {
            do throws(CRUDError) {
                let operation = try Operation(element, of: text, maximumDepth: loop.limits.jsonDepth)
                try check(operation, call)
                operations.append(operation)
            } catch {
                throw error.at(index)
            }
        }
        return operations
    }

    private func check(_ operation: Operation, _ call: borrowing Call) throws(CRUDError) {
        do throws(CRUDError) {
            try encoder.check(operation)
        } catch {
            throw naming(error, operation, call)
        }
    }

    /// An error whose message names the record of an operation.
    private func naming(_ error: CRUDError, _ operation: Operation, _ call: borrowing Call) -> CRUDError {
        error.about(call.decode(operation.id), in: call.decode(operation.collection))
    }

    private func find(_ operation: Operation, _ call: borrowing Call) -> Result<Collection, CRUDError> {
        do throws(CRUDError) {
            return .success(try collections.find(operation.collection, call, to: operation.kind.access))
        } catch {
            return .failure(error)
        }
    }

    /// Encodes the items, and logs which operations are denied: they have waited as often as they had to.
    private func assignments(
        _ operations: [Operation], _ targets: [Result<Collection, CRUDError>], _ call: borrowing Call
    ) -> [Assignment] {
        var assignments: [Assignment] = []
        for (operation, target) in zip(operations, targets) {
            do throws(CRUDError) {
                let collection = try target.get()
                let item = try encoder.prepare(operation, call, for: collection)
                assignments.append(Assignment(operation: operation, target: .success((collection, item))))
            } catch {
                if error.code == .permissionDenied {
                    let name = call.decode(operation.collection)
                    call.session.noteDenial(of: .recordBatch, operation.kind, on: name, call.traceParent)
                }
                assignments.append(
                    Assignment(operation: operation, target: .failure(naming(error, operation, call))))
            }
        }
        return assignments
    }

    /// - Throws: the error of the first operation that cannot be executed; `unsupported` if no backend can execute all.
    private func checkAtomicity(of assignments: [Assignment], _ call: borrowing Call) throws(CRUDError) {
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
                throw naming(error, assignment.operation, call).at(index)
            }
        }
    }

    // MARK: Starting

    private func start(
        _ assignments: [Assignment], _ kind: RequestKind, _ used: [Collection], _ call: borrowing Call, isAtomic: Bool,
        replyBytes: Int
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
        let now = encoder.now(for: assignments.lazy.map(\.operation))
        for (number, collections) in parts.enumerated() {
            submit(
                assignments, kind, collections, call, results, budget, now: now,
                // The first part is charged for the request's text and for the reply.
                chargedBytes: number == 0 ? call.chargedBytes + (call.array == nil ? replyBytes : 0) : 0)
        }
    }

    /// Hands one backend its operations.
    ///
    /// - Parameters:
    ///   - now: the clock by which records expire.
    ///   - chargedBytes: what the session is charged for this part beside the items.
    private func submit(
        _ assignments: [Assignment], _ kind: RequestKind, _ collections: [Collection], _ call: borrowing Call,
        _ results: BatchResults, _ budget: ByteBudget, now: Int64, chargedBytes: Int
    ) {
        let client = collections[0].client
        let session = call.session.number
        let batch =
            results.isAtomic
            ? MutationBatch(isAtomic: true, of: session, deliver: client.deliver)
            : client.pendingMutations(
                of: session, transforms: kind == .slicedWrite || assignments.contains { $0.operation.transforms })
        var positions: [Int] = []
        var mutations: [Mutation] = []
        var chargedBytes = chargedBytes
        for (position, assignment) in assignments.enumerated() {
            guard case .success(let (collection, item)) = assignment.target, collection.client === client else {
                continue
            }
            positions.append(position)
            chargedBytes += item.count
            mutations.append(
                encoder.mutation(assignment.operation, item, call, in: collection, batch, now: now, budget))
        }
        let pending = PendingOperations(call, kind, collections, results, positions, chargedBytes: chargedBytes)
        pending.start()
        if results.isAtomic {
            client.submit(atomic: batch, mutations, for: pending)
        } else {
            client.append(mutations, to: batch, for: pending)
        }
    }
}
