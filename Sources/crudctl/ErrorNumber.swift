import Glibc

/// The C library's last error.
enum ErrorNumber {
    /// Its message, such as `No such file or directory`.
    static var message: String {
        // The text is copied before another call can change it.
        unsafe String(cString: strerror(errno))
    }
}
