import CLinux
import Glibc

/// A file in which a plugin counts the commits of everybody: a number that each increments by one.
///
/// It is read by a system call and not mapped: should somebody truncate the file, the number cannot be read, while a
/// mapping would raise SIGBUS.
package final class CommitCounter: Sendable {
    private let descriptor: CInt
    private let offset: Int

    /// Where the number is.
    package struct Place: Sendable, Equatable {
        package var path: String
        package var offset: UInt64

        package init(path: String, offset: UInt64) {
            self.path = path
            self.offset = offset
        }
    }

    /// - Returns: nil where it cannot be read.
    package init?(at place: Place) {
        guard place.path.hasPrefix("/"), let offset = Int(exactly: place.offset) else { return nil }
        self.offset = offset
        descriptor = clinux_open(place.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0)
        // Of anything but a file that holds the number nothing can be read.
        guard descriptor >= 0, value != nil else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The number; nil where it cannot be read.
    package var value: UInt32? {
        var value: UInt32 = 0
        let count = withUnsafeMutableBytes(of: &value) { pread(descriptor, $0.baseAddress, $0.count, offset) }
        return count == MemoryLayout<UInt32>.size ? value : nil
    }
}
