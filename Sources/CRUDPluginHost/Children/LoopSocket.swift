import Glibc

/// The daemon's end of a channel that an event loop uses, as the child keeps it: the loop has a copy.
final class LoopSocket: Sendable {
    private let descriptor: CInt

    /// - Parameter descriptor: closed with the object.
    init(owning descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Tells both ends that nothing more will come.
    func shutDown() { FramedSocket.shutDown(descriptor) }

    /// A descriptor for the loop to close; nil where the system gives none.
    ///
    /// A copy, so that the child can be told of the end when the loop has closed its own.
    func duplicate() -> CInt? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : copy
    }
}
