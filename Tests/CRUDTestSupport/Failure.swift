import Glibc

/// Why a test could not continue: the system, the build or the daemon did not do what the test requires.
package struct Failure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// A system call that failed.
    package static func system(_ call: String, _ code: Int32? = nil) -> Failure {
        Failure("\(call): \(String(cString: strerror(code ?? errno)))")
    }
}
