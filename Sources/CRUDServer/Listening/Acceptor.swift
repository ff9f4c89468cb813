import CRUDEventLoop
import CRUDModel
import Logging

/// Distributes new connections over the event loops, round robin.
final class Acceptor: ListenerHandler {
    private let loops: [Mailbox]
    private let sessions: SessionLimiter
    private let logger: Logger
    private var next = 0
    private var limit = LogLimiter()

    init(_ loops: [Mailbox], _ sessions: SessionLimiter, logger: Logger) {
        self.loops = loops
        self.sessions = sessions
        self.logger = logger
    }

    func accepted(_ descriptor: CInt, by listener: Listener) {
        loops[next].post(.connection(descriptor))
        next = (next + 1) % loops.count
    }

    func rejected(_ descriptor: CInt, by listener: Listener) {
        sessions.noteRefused()
        if let more = limit.admit(at: listener.loop.now) {
            let owner = Peer(of: descriptor).map { "uid \($0.uid)" } ?? "an unknown user"
            logger.warning("a connection of \(owner) is refused: the daemon has no descriptors left\(more)")
        }
        StreamBuffer.send(
            CRUDError(.unavailable, "the daemon has no descriptor left for another session"), overRejected: descriptor)
    }
}
