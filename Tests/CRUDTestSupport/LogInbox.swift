package import Logging

/// A log that a test can wait for: `LEVEL: MESSAGE` for each line.
package struct LogInbox: LogHandler {
    private let lines: Inbox<String>
    package var logLevel = Logger.Level.trace
    package var metadata = Logger.Metadata()

    package init(lines: Inbox<String>) {
        self.lines = lines
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        lines.put("\(event.level): \(event.message)")
    }
}

extension Inbox<String> {
    /// Waits for a line with these words.
    package func wait(for words: String) throws -> String {
        let deadline = Deadline()
        while true {
            let line = try take(until: deadline)
            if line.contains(words) { return line }
        }
    }
}
