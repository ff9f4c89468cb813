import CRUDTestSupport
import Logging

/// A log that a test can wait for.
struct LogInbox: LogHandler {
    let lines: Inbox<String>
    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.put("\(event.level): \(event.message)")
    }
}

extension Inbox<String> {
    /// Waits for a line with these words.
    func wait(for words: String) throws -> String {
        let deadline = Deadline()
        while true {
            let line = try take(until: deadline)
            if line.contains(words) { return line }
        }
    }
}
