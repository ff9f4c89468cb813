import Glibc
import Logging
import Synchronization

/// What SIGTERM and SIGINT do: before the daemon serves they end it at once, afterwards they have every event loop
/// finish its requests.
final class Shutdown: Sendable {
    private enum State {
        case starting
        case listening(Listening)
        case serving([Mailbox])
    }

    private let manager: ServiceManager
    private let logger: Logger
    private let state = Mutex(State.starting)

    init(_ manager: ServiceManager, logger: Logger) {
        self.manager = manager
        self.logger = logger
    }

    /// Makes the sockets. A signal waits meanwhile, so that none is left behind.
    func listen(_ make: () throws(StartFailure) -> Listening) throws(StartFailure) -> Listening {
        try state.withLock { state throws(StartFailure) in
            let listening = try make()
            state = .listening(listening)
            return listening
        }
    }

    /// The daemon serves from now on, with these loops.
    func serving(_ loops: [Mailbox]) {
        state.withLock { $0 = .serving(loops) }
    }

    /// A signal has come; called on the signals' thread.
    func begin(_ signal: CInt) {
        manager.stopping()
        logger.notice("\(signal == SIGINT ? "SIGINT" : "SIGTERM"): finishing the requests in flight")
        state.withLock { state in
            switch state {
            // No request has been accepted yet, and a storage that hangs while it is opened must not keep the daemon
            // alive.
            case .starting: _exit(EXIT_SUCCESS)
            case .listening(let listening):
                listening.close()
                _exit(EXIT_SUCCESS)
            case .serving(let loops): for loop in loops { loop.post(.drain) }
            }
        }
    }
}
