import Glibc

/// A system call has failed.
package struct SystemCallError: Error, CustomStringConvertible {
    /// The call's name, `epoll_ctl` for example.
    package let call: String

    /// `errno` as the call has left it.
    package let code: CInt

    /// Takes `errno` as it is now.
    init(_ call: String) {
        self.call = call
        self.code = errno
    }

    package var description: String {
        "\(call): \(String(cString: strerror(code)))"
    }
}
