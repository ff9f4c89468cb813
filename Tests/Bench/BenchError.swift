import Glibc

/// Why a run ended without a result.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// A failed system call, with the message of the current `errno`.
    static func system(_ call: String) -> BenchError {
        BenchError("\(call): \(String(cString: strerror(errno)))")
    }
}
