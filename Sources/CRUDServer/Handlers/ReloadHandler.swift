import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDWire

/// `daemon.reload`: has another thread execute it. In a batch array the elements behind it wait until that is done.
final class ReloadHandler {
    private let loop: LoopState
    private let mailbox: Mailbox
    /// Those that are in flight, by a number that tells them from the others of this loop.
    private var pending: [UInt64: PendingReload] = [:]
    private var count: UInt64 = 0

    init(_ loop: LoopState, _ mailbox: Mailbox) {
        self.loop = loop
        self.mailbox = mailbox
    }

    func reload(_ call: borrowing Call) {
        let number = count
        count += 1
        let request = PendingReload(call, .read, on: nil)
        pending[number] = request
        request.start()
        let options = PlacePlan.Options(force: call.isTrue(.force), move: call.isTrue(.move))
        loop.service.reload(options) { [mailbox] in mailbox.post(.reloaded(number, $0)) }
    }

    /// The outcome of a reload: what has changed, or why nothing has.
    func finish(_ number: UInt64, _ outcome: Result<ReloadChanges, CRUDError>) {
        guard let request = pending.removeValue(forKey: number) else { return }
        request.finish(outcome)
    }

    /// Whether any is in flight.
    var hasPending: Bool { !pending.isEmpty }

    /// Fails those that have waited too long.
    func expire(at now: Duration) {
        let overdue = CRUDError(
            .outcomeUnknown, "the reload takes long; the daemon's log will tell its outcome")
        for (number, request) in pending where request.deadline <= now { finish(number, .failure(overdue)) }
    }
}

/// A `daemon.reload` in flight.
private final class PendingReload: PendingRequest {
    func finish(_ outcome: Result<ReloadChanges, CRUDError>) {
        reply { output throws(CRUDError) in
            let changes = try outcome.get()
            output.appendObject { result in
                result.member("changes", strings: changes.lines)
                result.member("moves", strings: changes.moves)
            }
        }
        hasReplied()
        ended()
    }
}
