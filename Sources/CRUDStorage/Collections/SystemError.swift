import Glibc

/// A system call that failed: what was attempted, and errno's text.
package struct SystemError: Error, CustomStringConvertible {
    package let description: String
    /// errno.
    package let code: CInt

    package init(_ attempt: String, code: CInt = errno) {
        self.code = code
        description = "\(attempt): \(String(cString: strerror(code)))"
    }

    /// An error whose message says all, without the text of errno.
    package init(message: String, code: CInt) {
        self.code = code
        description = message
    }
}
