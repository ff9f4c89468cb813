/// A method of the protocol, as the client sees it.
struct RemoteMethod: Sendable {
    /// What a call of the method does to the daemon.
    enum Effect: Sendable {
        /// Nothing: the call may be made again where its answer was lost.
        case reads
        /// Something, perhaps: where its answer was lost, it may or may not have been applied.
        case writes
    }

    let name: String
    let effect: Effect

    private init(_ name: String, _ effect: Effect) {
        self.name = name
        self.effect = effect
    }

    /// The method called `name`. One that this client does not know is taken to write.
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
    static let query = RemoteMethod("record.query", .reads)
    static let count = RemoteMethod("record.count", .reads)
    static let deleteMatching = RemoteMethod("record.deleteMatching", .writes)
    static let batch = RemoteMethod("record.batch", .writes)
    static let listCollections = RemoteMethod("collection.list", .reads)
    static let describeCollection = RemoteMethod("collection.describe", .reads)
    static let listBackends = RemoteMethod("backend.list", .reads)
    static let listPlugins = RemoteMethod("plugin.list", .reads)
    static let hello = RemoteMethod("session.hello", .reads)
    static let ping = RemoteMethod("daemon.ping", .reads)
    static let status = RemoteMethod("daemon.status", .reads)

    /// Every method that is known to change nothing.
    private static let reading = [
        read, exists, readMany, query, count, listCollections, describeCollection, listBackends, listPlugins, hello,
        ping, status,
        RemoteMethod("rpc.discover", .reads),
    ]
}
