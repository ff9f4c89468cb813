import CRUDPluginHost
import Glibc
import Synchronization

/// Ends the process with a report when a check crashes it or does not come to an end.
final class CheckWatch: Sendable {
    private static let patience = Duration.seconds(120)

    private let running = Mutex<(check: String, since: ContinuousClock.Instant)?>(nil)

    init() {
        for signal in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE] {
            Glibc.signal(signal) { _ in
                // Nothing but calls that a signal handler may make.
                let text: StaticString = "FAILED  the plugin has crashed in the check that comes after these\n"
                write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
                _exit(70)
            }
        }
        // Without the thread a check that hangs has to be ended by hand.
        _ = try? Thread(named: "watch") { [self] in watch() }
    }

    func begin(_ check: String) {
        running.withLock { $0 = (check, .now) }
    }

    func end() {
        running.withLock { $0 = nil }
    }

    private func watch() {
        while true {
            sleep(1)
            let overdue = running.withLock { running in running.flatMap { .now - $0.since > Self.patience ? $0.check : nil } }
            if let overdue {
                StandardStream.output.write("FAILED  \(overdue)\n            no end within \(Self.patience)\n")
                _exit(70)
            }
        }
    }
}
