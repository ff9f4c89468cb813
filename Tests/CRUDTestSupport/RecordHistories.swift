import Synchronization

/// The histories of a few records that several clients write and read at once, each on a thread of its own.
final class RecordHistories: Sendable {
    private struct State {
        var records: [RecordHistory]
        var lastTicket = 0
    }

    private let state: Mutex<State>

    /// What records can have held is remembered of so many items, as nothing asks for it here.
    private static let longestPast = 1000

    init(records count: Int) {
        state = Mutex(State(records: Array(repeating: RecordHistory(), count: count)))
    }

    /// Notes a request while `body` executes it.
    ///
    /// - Returns: what `body` returns: what its reply says.
    /// - Throws: what `body` throws, or a ``Violation``.
    func note(
        _ operation: RecordHistory.Operation, _ record: Int, by client: Int,
        _ body: () throws -> RecordHistory.Outcome
    ) throws -> RecordHistory.Outcome {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            state.records[record].begin(state.lastTicket, operation, on: client)
            return state.lastTicket
        }
        let outcome = try body()
        try state.withLock { state in
            do throws(Violation) {
                try state.records[record].end(ticket, outcome)
            } catch {
                throw Violation(description: "record \(record), client \(client): \(error)")
            }
            if state.records[record].past.count > Self.longestPast { state.records[record].forgetPast() }
        }
        return outcome
    }
}
