import Glibc

/// Why a run ended without a figure.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// A system call that failed, with the text of the current `errno`.
    static func system(_ call: String) -> BenchError {
        BenchError("\(call): \(String(cString: strerror(errno)))")
    }
}
