import CRUDModel
import CRUDPluginABI

/// Batches of mutations on their way to the plugin as one call, which a plugin with transactions makes one commit.
struct WriteRun {
    private var batches: [MutationBatch] = []

    mutating func append(_ batch: MutationBatch) {
        batches.append(batch)
    }

    /// Has the plugin carry out what was appended, hands the outcomes to the batches, and delivers them.
    mutating func carryOut(write: (inout crudd_write) throws(CRUDError) -> Void) {
        guard !batches.isEmpty else { return }
        defer { batches.removeAll() }
        let mutations = batches.flatMap { batch in
            batch.mutations.indices.map { crudd_mutation(batch.mutations[$0], at: $0, in: batch) }
        }
        // The plugin is not asked about a mutation that is refused, nor about one of a collection that is not there: it
        // is one of a record that is not there.
        let asked = mutations.indices.filter { mutations[$0].collection != nil }
        var outcomes = [crudd_outcome](repeating: crudd_outcome(), count: asked.count)
        do throws(CRUDError) {
            if !asked.isEmpty {
                try Self.call(
                    asked.count == mutations.count ? mutations : asked.map { mutations[$0] }, &outcomes, write)
            }
        } catch {
            return fail(error, write)
        }
        var next = 0
        for batch in batches {
            batch.outcomes = batch.mutations.enumerated().map { index, mutation in
                if let refusal = batch.refusals[index] { return .refused(refusal) }
                guard mutation.collection.isOpen else { return .notFound }
                defer { next += 1 }
                return MutationOutcome(outcomes[next])
            }
            batch.finish()
        }
    }

    /// The call has failed and nothing was applied, or nobody knows. What may be the fault of one batch alone is not made
    /// that of the others: they are tried one by one.
    private func fail(_ error: CRUDError, _ write: (inout crudd_write) throws(CRUDError) -> Void) {
        let mayBeOneAlone = [.corrupt, .internalError, .unsupported].contains(error.code)
        for batch in batches {
            if mayBeOneAlone, batches.count > 1 {
                var run = WriteRun()
                run.append(batch)
                run.carryOut(write: write)
            } else {
                batch.failure = error
                batch.finish()
            }
        }
    }

    private static func call(
        _ mutations: [crudd_mutation], _ outcomes: inout [crudd_outcome],
        _ write: (inout crudd_write) throws(CRUDError) -> Void
    ) throws(CRUDError) {
        var result: Result<Void, CRUDError> = .success(())
        mutations.withUnsafeBufferPointer { mutations in
            outcomes.withUnsafeMutableBufferPointer { outcomes in
                var request = crudd_write()
                request.struct_size = UInt32(MemoryLayout<crudd_write>.size)
                request.mutations = mutations.baseAddress
                request.outcomes = outcomes.baseAddress
                request.count = mutations.count
                do throws(CRUDError) { try write(&request) } catch { result = .failure(error) }
            }
        }
        try result.get()
    }
}

extension MutationBatch {
    /// Opens the collections that the mutations name. That one cannot be opened is the failure of its own mutations;
    /// the others may be other sessions'.
    func openCollections(with open: (Mutation) throws(CRUDError) -> Void) {
        for (index, mutation) in mutations.enumerated() {
            do throws(CRUDError) { try open(mutation) } catch { refusals[index] = error }
        }
    }
}

extension crudd_mutation {
    /// The mutation as the plugin sees it; its addresses hold as long as the batch.
    fileprivate init(_ mutation: Mutation, at index: Int, in batch: MutationBatch) {
        self.init()
        collection = batch.refusals[index] == nil ? mutation.collection.handle : nil
        kind = UInt32(mutation.kind == .put ? CRUDD_PUT : CRUDD_REMOVE)
        id = crudd_bytes(batch.arena.bytes(mutation.id))
        item = crudd_bytes(batch.arena.bytes(mutation.item))
        revision = crudd_bytes(batch.arena.bytes(mutation.revision))
        switch mutation.precondition {
        case .any: precondition = UInt32(CRUDD_IF_ANY)
        case .absent: precondition = UInt32(CRUDD_IF_ABSENT)
        case .present: precondition = UInt32(CRUDD_IF_PRESENT)
        case .revision(let expected):
            precondition = UInt32(CRUDD_IF_REVISION)
            self.expected = crudd_bytes(batch.arena.bytes(expected))
        }
    }
}

extension MutationOutcome {
    fileprivate init(_ outcome: crudd_outcome) {
        switch Int(outcome.status) {
        case CRUDD_OK: self = .applied(replaced: outcome.replaced != 0)
        case CRUDD_EXISTS: self = .exists
        case CRUDD_NOT_FOUND: self = .notFound
        case CRUDD_MISMATCH:
            let size = min(Int(outcome.revision_size), MemoryLayout.size(ofValue: outcome.revision))
            self = .mismatch(current: withUnsafeBytes(of: outcome.revision) { Array($0.prefix(size)) })
        default: self = .failed(status: Int(outcome.status))
        }
    }
}
