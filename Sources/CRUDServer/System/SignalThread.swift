import CRUDThreads
import Glibc

/// Receives the daemon's signals on a thread of their own, so that no handler ever interrupts anything.
enum SignalThread {
    /// Blocks the signals for the calling thread and all that it starts from now on; to be called before any other
    /// thread exists.
    static func block() {
        signal(SIGPIPE, SIG_IGN)
        var set = signals
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    private static var signals: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        return set
    }

    /// Has `received` called for each signal that arrives, or has arrived since ``block()``.
    static func start(_ received: @escaping @Sendable (CInt) -> Void) throws(ThreadFailure) {
        _ = try Thread(named: "signals") {
            var set = signals
            var number: CInt = 0
            while true {
                if sigwait(&set, &number) == 0 { received(number) }
            }
        }
    }
}
