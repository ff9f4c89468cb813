import CRUDEventLoop
import CRUDModel

/// The calls of one event loop that other threads execute: reloads, and questions about all loops. In a batch array the
/// elements behind such a call wait until it is done.
final class DelegatedCalls {
    /// Gets the result as JSON text, or why there is none; to be called once, on any thread.
    typealias Completion = @Sendable (Result<[UInt8], CRUDError>) -> Void

    private let mailbox: Mailbox
    /// Those that are in flight, by a number that tells them from the others of this loop.
    private var pending: [UInt64: PendingDelegation] = [:]
    private var count: UInt64 = 0

    /// - Parameter mailbox: of the loop.
    init(_ mailbox: Mailbox) {
        self.mailbox = mailbox
    }

    /// Begins a call.
    ///
    /// - Parameters:
    ///   - overdue: the reply where the other thread takes too long.
    ///   - audit: what the audit trail says of it; nil: nothing.
    /// - Returns: what the other thread is to call in the end.
    func begin(_ call: borrowing Call, overdue: CRUDError, audit: AuditEntry.Details? = nil) -> Completion {
        let number = count
        count += 1
        let request = PendingDelegation(call, overdue: overdue, audit)
        return start(request, number)
    }

    /// Begins a call that takes as long as it does, unless its session ends.
    ///
    /// - Parameters:
    ///   - cancellation: is told that nobody waits any more; the other thread still calls what is returned.
    ///   - audit: what the audit trail says of it.
    /// - Returns: what the other thread is to call in the end.
    func begin(
        _ call: borrowing Call, _ cancellation: BackupCancellation, audit: AuditEntry.Details
    ) -> Completion {
        let number = count
        count += 1
        let overdue = CRUDError(.unavailable, "the daemon is shutting down")
        return start(PendingDelegation(call, overdue: overdue, audit, cancellation), number)
    }

    private func start(_ request: PendingDelegation, _ number: UInt64) -> Completion {
        pending[number] = request
        request.start()
        return { [mailbox] in mailbox.post(.delegated(number, $0)) }
    }

    /// The daemon is about to end: cancels what may take long.
    func drain() {
        for request in pending.values { request.cancellation?.cancel("the daemon is shutting down") }
    }

    /// Takes the outcome of a call.
    func finish(_ number: UInt64, _ outcome: Result<[UInt8], CRUDError>) {
        pending.removeValue(forKey: number)?.finish(outcome)
    }

    /// The time on the loop's clock at which everything is overdue.
    static let end = Duration.seconds(Int64.max)

    /// Whether any is in flight.
    var hasPending: Bool { !pending.isEmpty }

    /// Fails those that have waited too long.
    func expire(at now: Duration) {
        for (number, request) in pending {
            if let cancellation = request.cancellation, now != Self.end {
                if !request.isWanted { cancellation.cancel("its connection has gone") }
            } else if request.deadline <= now {
                finish(number, .failure(request.overdue))
            }
        }
    }
}

/// A call that another thread executes.
private final class PendingDelegation: PendingRequest {
    let overdue: CRUDError
    /// Nil for a call that has a deadline.
    let cancellation: BackupCancellation?
    private let details: AuditEntry.Details?
    override var audit: AuditEntry.Details? { details }
    private var text: [UInt8] = []

    init(
        _ call: borrowing Call, overdue: CRUDError, _ details: AuditEntry.Details?,
        _ cancellation: BackupCancellation? = nil
    ) {
        self.overdue = overdue
        self.cancellation = cancellation
        self.details = details
        super.init(call, .read, on: nil)
    }

    func finish(_ outcome: Result<[UInt8], CRUDError>) {
        switch outcome {
        case .success(let text) where !session.hasRoom(for: text.count):
            self.text = text
            // It may have taken longer than a request may.
            awaitRoom(for: text.count, until: max(deadline, session.loop.deadline))
        case .success(let text):
            self.text = text
            reply()
        case .failure(let error):
            reply(with: error)
            hasReplied()
            ended()
        }
    }

    override func submitAgain(withRoomFor bytes: Int) { reply() }

    // It has been executed.
    override var canBeWithdrawn: Bool { false }
    override var errorWithoutRoom: CRUDError {
        CRUDError(
            details == nil ? .unavailable : .outcomeUnknown,
            "the call has been executed, and there was no room for its reply in time")
    }

    private func reply() {
        let text = text
        reply { $0.append(text.span) }
        hasReplied()
        ended()
    }
}
