import CRUDConfiguration
import CRUDStorage
import Glibc

/// The sockets at which the daemon listens: those that systemd passes, else its own.
struct Listening {
    let descriptors: [CInt]
    /// The daemon's own path; nil where systemd made the sockets.
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
                    "descriptor \(descriptor), passed by systemd, is not a listening Unix stream socket")
            }
            return
        }
        let positions = configuration.positions
        do throws(SocketPath.Failure) {
            let path = try SocketPath(configuration.socket.path)
            own = path
            descriptors = [try path.listen(configuration.socket)]
        } catch {
            switch error {
            case .path(let error):
                throw StartFailure(error, of: "socket.path", at: positions.socketPath, in: configuration)
            case .group(let error):
                throw StartFailure(error, of: "socket.group", at: positions.socketGroup, in: configuration)
            }
        }
    }

    /// Whether sessions can be accepted there, and their peers identified.
    private static func isListening(_ descriptor: CInt) -> Bool {
        func option(_ name: CInt) -> CInt? {
            var value: CInt = 0
            var size = socklen_t(MemoryLayout<CInt>.size)
            return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
        }
        return option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == CInt(SOCK_STREAM.rawValue)
            && option(SO_ACCEPTCONN) == 1
    }

    /// Removes the socket file, unless systemd made it.
    func close() {
        own?.remove()
    }
}
