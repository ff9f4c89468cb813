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
            for descriptor in descriptors where !Self.isListening(descriptor) {
                throw StartFailure(
                    .configuration,
                    "descriptor \(descriptor), handed over by systemd, is no listening stream Unix socket")
            }
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

    /// Whether sessions can be accepted there, and peers be known.
    private static func isListening(_ descriptor: CInt) -> Bool {
        func option(_ name: CInt) -> CInt? {
            var value: CInt = 0
            var size = socklen_t(MemoryLayout<CInt>.size)
            return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
        }
        return option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == CInt(SOCK_STREAM.rawValue)
            && option(SO_ACCEPTCONN) == 1
    }

    /// Removes the socket file, unless it is systemd's.
    func close() {
        own?.remove()
    }
}
