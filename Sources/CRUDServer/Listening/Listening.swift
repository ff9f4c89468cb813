import CRUDConfiguration
import CRUDCore
import Glibc

/// The sockets that the daemon listens at: those that systemd hands it, else its own.
struct Listening {
    let descriptors: [CInt]
    /// The daemon's own place; nil where systemd made the sockets.
    private let own: SocketPath?

    /// Whether the daemon has made the sockets, as the configuration says.
    var isOwn: Bool { own != nil }

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
            throw StartFailure(error, of: "socket.path")
        }
    }

    /// Removes the socket file, unless it is systemd's.
    func close() {
        own?.remove()
    }
}
