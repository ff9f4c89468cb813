import CRUDClient
import CRUDModel

extension InMemoryDatabase {
    /// Makes the next calls fail.
    ///
    /// ```swift
    /// let database = InMemoryDatabase()
    /// database.inject(.lostReply, in: "orders")                   // the next write of an order
    /// database.inject(.unavailable, times: nil)                   // everything, until removeFaults()
    /// ```
    ///
    /// One call has at most one of the faults that end it, the earliest that concerns it, and one that delays it.
    ///
    /// - Parameters:
    ///   - fault: what happens to them.
    ///   - times: to how many calls; nil: to all until ``removeFaults()``.
    ///   - collection: only to calls of this collection; nil: of any. A transaction or batch is a call of the
    ///     collection whose repository executes it.
    public func inject(_ fault: Fault, times: Int? = 1, in collection: String? = nil) {
        faults.add(fault, times: times, in: collection)
    }

    /// Calls succeed again.
    public func removeFaults() {
        faults.removeAll()
    }
}

extension InMemoryDatabase {
    /// Executes a call with the faults that it is to have, after other tasks have run.
    func call<Value>(
        _ effect: FaultList.Effect, in collection: String, _ execute: () async throws -> Value
    ) async throws -> Value {
        try RequestCheck.task()
        await Task.yield()
        let (delay, end) = faults.take(effect, collection)
        if let delay { try await wait(delay, effect) }
        switch end {
        case nil, .slow: return try await execute()
        case .unavailable: throw CRUDError(.unavailable, "the test has made the database unavailable")
        case .lostRequest: throw Self.outcomeUnknown("was lost before it was executed")
        case .lostReply:
            // Its reply may have been an error.
            _ = try? await execute()
            throw Self.outcomeUnknown("was executed, and its reply was lost")
        }
    }

    private func wait(_ delay: Duration, _ effect: FaultList.Effect) async throws {
        do {
            try await sleep(for: delay)
            try RequestCheck.task()
        } catch {
            guard effect == .writes else { throw error }
            let cause: any Error = (error as? CRUDError)?.cause ?? error
            throw Self.outcomeUnknown("was slow", cause: cause)
        }
    }

    private static func outcomeUnknown(_ what: String, cause: (any Error)? = nil) -> CRUDError {
        CRUDError(.outcomeUnknown, "the test has made the outcome unknown: the write \(what)", cause: cause)
    }
}
