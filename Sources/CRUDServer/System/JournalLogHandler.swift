import Glibc
import Logging

/// Writes log lines to stderr as systemd's journal reads them: each begins with its priority, `<6>` (sd-daemon(3)).
///
/// On a terminal the level's name stands there instead. Where stderr is the journal's own stream, lines go to
/// its socket with their metadata as fields: `backend` becomes `CRUDD_BACKEND`.
struct JournalLogHandler: LogHandler {
    private let threshold: LogThreshold
    /// The level of this handler alone, where it has been given one.
    private var ownLevel: Logger.Level?
    var metadata: Logger.Metadata = [:]
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let journal = JournalSocket()

    init(threshold: LogThreshold) {
        self.threshold = threshold
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? threshold.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let prefix = isTerminal ? "\(event.level): " : "<\(Self.priority(of: event.level))>"
        // One line for one event, whatever a message quotes.
        let text = "\(event.message)".map { $0.isNewline ? " " : $0 }
        let fields = metadata.merging(event.metadata ?? [:]) { $1 }.map { ($0.key, "\($0.value)") }
        if let journal, journal.send(String(text), priority: Self.priority(of: event.level), fields) { return }
        let line = Array((prefix + String(text) + "\n").utf8)
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// syslog(3)'s priorities.
    private static func priority(of level: Logger.Level) -> Int {
        switch level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
