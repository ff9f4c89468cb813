import CLinux
import CPostgreSQL
import CRUDPluginKit
import CRUDPluginThreads
import Glibc

/// A request to the server to stop what a connection does.
///
/// libpq sends it over a connection of its own and waits, without a limit, until the server closes that. One that is
/// frozen, or cut off, never does, so a detached thread waits.
// libpq's object belongs to the thread alone.
final class Cancellation: @unchecked Sendable {
    private let request: OpaquePointer
    /// Written to when it is done; an eventfd.
    private let end = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    /// - Parameter request: libpq's, which belongs to this object from now on.
    init(_ request: OpaquePointer) {
        self.request = request
    }

    deinit {
        PQfreeCancel(request)
        close(end)
    }

    /// Sends it. Should the server refuse, the statement runs to its end.
    ///
    /// - Returns: false where the server does not reply in time.
    func send(atMost milliseconds: Int32) -> Bool {
        guard BackgroundThread.detach(named: "cancel", { self.run() }) else { return false }
        var interest = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
        return poll(&interest, 1, milliseconds) > 0
    }

    private func run() {
        var message = [CChar](repeating: 0, count: 256)
        _ = PQcancel(request, &message, Int32(message.count))
        eventfd_write(end, 1)
    }
}
