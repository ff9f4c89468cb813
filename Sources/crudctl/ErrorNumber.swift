import ArgumentParser
import CRUDModel
import Glibc

/// The C library's last error.
enum ErrorNumber {
    /// Its message, such as `No such file or directory`.
    static var message: String {
        // The text is copied before another call can change it.
        unsafe String(cString: strerror(errno))
    }

    /// The error of a file that cannot be written: `no_space` where that is why, else wrong usage, as for a file that
    /// cannot be read.
    ///
    /// - Parameter file: its name, for the message.
    static func cannotWrite(_ file: String) -> any Error {
        let isFull = errno == ENOSPC || errno == EDQUOT
        let text = "cannot write \(file): \(message)"
        return isFull ? CRUDError(.noSpace, text) : ValidationError(text)
    }
}
