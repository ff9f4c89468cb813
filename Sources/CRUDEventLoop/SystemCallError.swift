import Glibc

/// A system call has failed.
package struct SystemCallError: Error, CustomStringConvertible {
    /// The call's name, `epoll_ctl` for example.
    package let call: String

    /// The call's `errno`.
    package let code: CInt

    /// Stores the present `errno`.
    init(_ call: String) {
        self.call = call
        self.code = errno
    }

    package var description: String {
        "\(call): \(String(cString: strerror(code)))"
    }
}
