import CRUDEventLoop
import CRUDModel
import Logging

/// Spreads new connections over the event loops, one after the other.
final class Acceptor: ListenerHandler {
    private let loops: [Mailbox]
    private let logger: Logger
    private var next = 0

    init(_ loops: [Mailbox], logger: Logger) {
        self.loops = loops
        self.logger = logger
    }

    func accepted(_ descriptor: CInt, by listener: Listener) {
        loops[next].post(.connection(descriptor))
        next = (next + 1) % loops.count
    }

    func turnedAway(_ descriptor: CInt, by listener: Listener) {
        logger.warning("a connection was turned away: no descriptors are left")
        let reply = ReplyWriter()
        reply.error(CRUDError(.unavailable, "the daemon has no descriptor left for another session"))
        reply.send(to: descriptor)
    }
}
