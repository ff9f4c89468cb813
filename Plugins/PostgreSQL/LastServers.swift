import Synchronization

/// The servers that this process has used last, by what they were connected to for. A backend whose server stays away
/// is closed and opened again, and has not forgotten by that which one it was.
enum LastServers {
    struct Server {
        let address: ServerAddress
        let identity: ServerIdentity
        /// Why another one is needed; nil: none is.
        var cause: String?
    }

    private static let servers = Mutex<[ConnectionSettings: Server]>([:])

    static subscript(settings: ConnectionSettings) -> Server? {
        get { servers.withLock { $0[settings] } }
        set { servers.withLock { $0[settings] = newValue } }
    }
}
