/// A method of the protocol, from the client's point of view.
struct RemoteMethod: Sendable {
    /// Whether a call of the method may change something.
    enum Effect: Sendable {
        /// It does not: the call may be sent again if its reply was lost.
        case reads
        /// It may: if the reply was lost, the outcome is unknown.
        case writes
    }

    let name: String
    let effect: Effect

    private init(_ name: String, _ effect: Effect) {
        self.name = name
        self.effect = effect
    }

    /// The method with this name. One that this client does not know is assumed to write.
    init(named name: String) {
        self = Self.reading.first { $0.name.utf8.elementsEqual(name.utf8) } ?? RemoteMethod(name, .writes)
    }

    static let create = RemoteMethod("record.create", .writes)
    static let read = RemoteMethod("record.read", .reads)
    static let update = RemoteMethod("record.update", .writes)
    static let delete = RemoteMethod("record.delete", .writes)
    static let upsert = RemoteMethod("record.upsert", .writes)
    static let exists = RemoteMethod("record.exists", .reads)
    static let readMany = RemoteMethod("record.readMany", .reads)
    static let patch = RemoteMethod("record.patch", .writes)
    static let touch = RemoteMethod("record.touch", .writes)
    static let query = RemoteMethod("record.query", .reads)
    static let count = RemoteMethod("record.count", .reads)
    static let deleteMatching = RemoteMethod("record.deleteMatching", .writes)
    static let batch = RemoteMethod("record.batch", .writes)
    static let listCollections = RemoteMethod("collection.list", .reads)
    static let describeCollection = RemoteMethod("collection.describe", .reads)
    static let changes = RemoteMethod("collection.changes", .reads)
    static let hello = RemoteMethod("session.hello", .reads)
    static let ping = RemoteMethod("daemon.ping", .reads)
    static let cancel = RemoteMethod("request.cancel", .reads)

    /// All methods of the protocol that change nothing.
    private static let reading =
        [read, exists, readMany, query, count, listCollections, describeCollection, changes, hello, ping, cancel]
        + [
            "backend.list", "plugin.list", "session.list", "daemon.status", "daemon.metrics", "daemon.slowLog",
            "rpc.discover", "session.whoami", "access.check", "daemon.configuration",
        ].map { RemoteMethod($0, .reads) }
}
