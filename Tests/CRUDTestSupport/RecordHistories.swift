import Synchronization

/// The histories of a few records that several clients write and read at once, each on a thread of its own.
///
/// A history is checked as far as all replies are known, so that a client that waits for a reply for seconds, beside
/// thousands of requests of others, leaves open only when its request took effect, and not what it has returned.
final class RecordHistories: Sendable {
    private struct Request {
        let operation: RecordHistory.Operation
        let client: Int
        var outcome: RecordHistory.Outcome?
    }

    private enum Event {
        case request, reply
    }

    private struct Record {
        var history = RecordHistory()
        /// Those that have not been checked, by ticket.
        var requests: [Int: Request] = [:]
        /// In their order; the first ones have been checked.
        var events: [(Event, ticket: Int)] = []
        var checkedEvents = 0

        /// Checks what has happened before the first request that has no reply yet.
        mutating func check() throws(Violation) {
            while checkedEvents < events.count {
                let (event, ticket) = events[checkedEvents]
                guard let request = requests[ticket], let outcome = request.outcome else { break }
                switch event {
                case .request: history.begin(ticket, request.operation, on: request.client, outcome: outcome)
                case .reply:
                    requests[ticket] = nil
                    try history.end(ticket, outcome)
                }
                checkedEvents += 1
            }
            guard checkedEvents == events.count || checkedEvents > longestPast else { return }
            events.removeFirst(checkedEvents)
            checkedEvents = 0
            if history.past.count > longestPast { history.forgetPast() }
        }
    }

    private struct State {
        var records: [Record]
        var lastTicket = 0
    }

    private let state: Mutex<State>

    /// What records can have held is remembered of so many items, as nothing asks for it here.
    private static let longestPast = 1000

    init(records count: Int) {
        state = Mutex(State(records: Array(repeating: Record(), count: count)))
    }

    /// Notes a request while `body` executes it.
    ///
    /// - Returns: what `body` returns: what its reply says.
    /// - Throws: what `body` throws, or a ``Violation``, which may be that of an earlier request.
    func note(
        _ operation: RecordHistory.Operation, _ record: Int, by client: Int,
        _ body: () throws -> RecordHistory.Outcome
    ) throws -> RecordHistory.Outcome {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            state.records[record].requests[state.lastTicket] = Request(operation: operation, client: client)
            state.records[record].events.append((.request, state.lastTicket))
            return state.lastTicket
        }
        let outcome = try body()
        try state.withLock { state in
            state.records[record].requests[ticket]?.outcome = outcome
            state.records[record].events.append((.reply, ticket))
            do throws(Violation) {
                try state.records[record].check()
            } catch {
                throw Violation(description: "record \(record), client \(client): \(error)")
            }
        }
        return outcome
    }
}
