import Glibc
import Synchronization

/// What SIGTERM and SIGINT do: before the daemon serves they end it at once, afterwards they have every event loop
/// finish its requests.
final class Shutdown: Sendable {
    private let manager: ServiceManager
    private let mailboxes = Mutex<[Mailbox]?>(nil)

    init(_ manager: ServiceManager) {
        self.manager = manager
    }

    /// The daemon serves from now on, with these loops.
    func serving(_ loops: [Mailbox]) {
        mailboxes.withLock { $0 = loops }
    }

    /// A signal has come; called on the signals' thread.
    func begin() {
        manager.stopping()
        // No request has been accepted yet, and a storage that hangs while it is opened must not keep the daemon alive.
        guard let loops = mailboxes.withLock({ $0 }) else { _exit(EXIT_SUCCESS) }
        for loop in loops { loop.post(.drain) }
    }
}
