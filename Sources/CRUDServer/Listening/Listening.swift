import CRUDConfiguration
import CRUDCore
import Glibc

/// The sockets that the daemon listens at: those that systemd hands it, else its own.
struct Listening {
    let descriptors: [CInt]
    /// The daemon's own place; nil where systemd made the sockets.
    private let own: SocketPath?

    init(_ configuration: Configuration, _ manager: ServiceManager) throws(StartFailure) {
        guard manager.listeningSockets.isEmpty else {
            descriptors = manager.listeningSockets
            own = nil
            return
        }
        do throws(SystemFault) {
            let path = try SocketPath(configuration.socket.path)
            own = path
            descriptors = [try path.listen(configuration.socket)]
        } catch {
            throw StartFailure(error.code == EADDRINUSE ? .occupied : .configuration, "socket.path: \(error)")
        }
    }

    /// Removes the socket file, unless it is systemd's.
    func close() {
        own?.remove()
    }
}
