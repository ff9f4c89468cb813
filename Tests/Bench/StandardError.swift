import Glibc

/// stderr, for people; stdout is for results.
struct StandardError: TextOutputStream {
    static func print(_ line: String) {
        var stream = StandardError()
        Swift.print(line, to: &stream)
    }

    mutating func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }
}
