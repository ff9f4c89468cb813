import CRUDPluginHost
import CRUDThreads
import Glibc
import Synchronization

/// Ends the process with a line of the report when a check crashes it or does not end.
final class CheckWatch: Sendable {
    private static let timeout = Duration.seconds(120)

    private let began = Mutex<(title: String, since: ContinuousClock.Instant)?>(nil)
    /// What the report says of the current check if it crashes: made beforehand, as a signal handler must not allocate.
    // Written between checks; read by the handler of a signal, after which nothing is written any more.
    nonisolated(unsafe) private static let crashLine = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 512)

    init() {
        Self.crashLine.initialize(repeating: 0)
        for number in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE] {
            signal(number) { _ in
                let text = CheckWatch.crashLine
                write(STDOUT_FILENO, text.baseAddress, text.firstIndex(of: 0) ?? text.count)
                _exit(70)  // EX_SOFTWARE
            }
        }
        // Without the thread a check that hangs has to be ended by hand.
        _ = try? Thread(named: "watch") { [self] in watch() }
    }

    func begin(_ title: String) {
        began.withLock { $0 = (title, .now) }
        _ = Self.crashLine.update(fromContentsOf: Self.line(title, "the plugin crashed").utf8.prefix(511))
    }

    func end() {
        began.withLock { $0 = nil }
        Self.crashLine.update(repeating: 0)
    }

    private func watch() {
        while true {
            sleep(1)
            let overdue = began.withLock { began in began.flatMap { .now - $0.since > Self.timeout ? $0.title : nil } }
            guard let overdue else { continue }
            StandardStream.output.write(Self.line(overdue, "it did not end within \(Self.timeout)"))
            _exit(70)  // EX_SOFTWARE
        }
    }

    private static func line(_ title: String, _ reason: String) -> String {
        "FAILED  \(title)\n            \(reason)\n"
    }
}
