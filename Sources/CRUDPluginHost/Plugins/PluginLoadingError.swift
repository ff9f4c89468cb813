package import CRUDModel
import Glibc

/// Why a plugin's file is not loaded: one line for the administrator.
package struct PluginLoadingError: Error, CustomStringConvertible {
    package let description: String
    package let kind: SystemErrorKind

    package init(_ description: String) {
        self.description = description
        kind = .configuration
    }

    /// A system call has failed.
    ///
    /// - Parameter code: errno.
    package init(_ description: String, _ code: Int32) {
        self.description = "\(description): \(String(cString: strerror(code)))"
        kind = SystemErrorKind(code)
    }
}
