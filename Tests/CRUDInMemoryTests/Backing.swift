import CRUDInMemory
import CRUDTestSupport

/// Where the records of a test are: every test of this module runs on each, and finds the same.
enum Backing: CaseIterable {
    case inMemory
    /// A server in the process of the tests.
    case server
    case daemon

    /// Fresh collections.
    ///
    /// - Parameter changes: whether the collections remember their changes.
    func open(changes: Bool = false) async throws -> Collections {
        let collections = "\"*\": {backend: main\(changes ? ", changes: true" : "")}"
        switch self {
        case .inMemory:
            return Collections(keeper: nil, InMemoryDatabase())
        case .server:
            let server = try InProcessServer(collections: collections)
            return Collections(keeper: server, try await CRUDClient.connect(path: server.socketPath))
        case .daemon:
            let daemon = try Daemon(Configuration(collections: collections))
            return Collections(keeper: daemon, try await CRUDClient.connect(path: daemon.socketPath))
        }
    }
}

/// The collections of a ``Backing``. They last as long as this value.
struct Collections: Sendable {
    /// The server or daemon, if there is one.
    let keeper: (any Sendable)?
    let store: @Sendable (String) -> any RecordStore
    /// What has the collections; nil where one store is all of them.
    let database: (any RecordDatabase)?

    init(keeper: (any Sendable)?, _ database: any RecordDatabase) {
        self.keeper = keeper
        self.database = database
        store = { database.repository($0) }
    }

    init(keeper: (any Sendable)?, _ store: @escaping @Sendable (String) -> any RecordStore) {
        self.keeper = keeper
        self.store = store
        database = nil
    }

    func repository<Model>(_ name: String, of type: Model.Type) -> Repository<Model> {
        Repository(store(name))
    }
}
