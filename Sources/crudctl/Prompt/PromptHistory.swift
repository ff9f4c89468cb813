import Glibc

/// The lines that were typed, in a file that only its user may read: items may be secret.
struct PromptHistory {
    private static let maximumLines = 1000
    private static let fileName = "history"

    private(set) var lines: [String] = []
    /// Nil where there is no place for the file.
    private let path: String?

    /// - Parameter directory: where programs keep their state; nil: `$XDG_STATE_HOME`, or `~/.local/state`
    ///   (https://specifications.freedesktop.org/basedir-spec/latest/).
    init(directory: String? = nil) {
        guard let directory = directory ?? Self.stateDirectory, Self.makeDirectories(directory + "/crudctl") else {
            path = nil
            return
        }
        let path = "\(directory)/crudctl/\(Self.fileName)"
        self.path = path
        guard let text = try? TextSource.file(path).text("the history") else { return }
        let all = text.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
        lines = all.suffix(Self.maximumLines)
        if all.count > 2 * Self.maximumLines { replace(path) }
    }

    /// Remembers a line; not one that begins with a space, nor the same one twice in succession.
    mutating func append(_ line: String) {
        guard !line.isEmpty, !line.hasPrefix(" "), !line.contains("\n"), line != lines.last else { return }
        lines = (lines + [line]).suffix(Self.maximumLines)
        // Without a file, or with one that cannot be written, there is no history the next time.
        if let path { Self.write("\(line)\n", to: path, O_APPEND) }
    }

    private func replace(_ path: String) {
        let new = "\(path).\(getpid())"
        if Self.write(lines.map { "\($0)\n" }.joined(), to: new, O_EXCL) { rename(new, path) } else { unlink(new) }
    }

    @discardableResult
    private static func write(_ text: String, to path: String, _ flags: Int32) -> Bool {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        return fchmod(file, 0o600) == 0 && FileOutput.write(text.utf8, to: file)
    }

    private static var stateDirectory: String? {
        if let state = environment("XDG_STATE_HOME"), state.hasPrefix("/") { return state }
        return environment("HOME").map { "\($0)/.local/state" }
    }

    private static func environment(_ name: String) -> String? {
        // The variable is terminated, and copied at once.
        guard let value = unsafe getenv(name).map({ unsafe String(cString: $0) }), !value.isEmpty else { return nil }
        return value
    }

    /// Makes a directory and those above it; false if that fails.
    private static func makeDirectories(_ path: String) -> Bool {
        var made = ""
        for name in path.split(separator: "/") {
            made += "/\(name)"
            guard mkdir(made, 0o700) == 0 || errno == EEXIST else { return false }
        }
        return true
    }
}
