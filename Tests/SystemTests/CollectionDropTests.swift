import CRUDTestSupport
import Testing

/// `collection.drop`.
@Suite struct CollectionDropTests {
    private static let backends = """
        sqlite: {plugin: sqlite, options: {path: $DIRECTORY/inline.sqlite}}
        sqlite-child: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}
        filesystem: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
        userdefaults: {plugin: userdefaults, options: {suite: drop}}
        memory: {plugin: memory}
        memory-child: {plugin: memory, isolation: process}
        postgresql: {plugin: postgresql, options: \(PostgreSQLServer.options("main"))}
        """
    private static let names = [
        "sqlite", "sqlite-child", "filesystem", "userdefaults", "memory", "memory-child", "postgresql",
    ]
    private static let configuration = Configuration(
        backends: backends,
        collections: names.map { "\"\($0)*\": {backend: \($0), indexes: [n]}" }.joined(separator: "\n"),
        limits: "collections: 3")

    private static func drop(_ collection: String, ifEmpty: Bool = false) -> (method: String, params: String) {
        ("collection.drop", #"{"collection":\#(JSON.quote(collection)),"ifEmpty":\#(ifEmpty)}"#)
    }

    private static func create(_ collection: String, _ id: String) -> (method: String, params: String) {
        ("record.create", Connection.params(collection, id, item: #"{"n":\#(id)}"#))
    }

    private func collections(_ connection: Connection) throws -> [String] {
        let list = try connection.call("collection.list").result?["collections"]?.elements
        return list?.compactMap { $0["name"]?.string } ?? []
    }

    /// The ids of the records whose `n` is over 1, which an index finds.
    private func query(_ connection: Connection, _ collection: String) throws -> [String?] {
        let params = #"{"collection":"\#(collection)","filter":{"op":">","args":[{"property":"n"},1]}}"#
        let records = try #require(try connection.call("record.query", params).result?["records"]?.elements)
        return records.map { $0["id"]?.string }
    }

    @Test(arguments: names)
    func dropsRecordsAndIndexes(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let (connection, other) = (try daemon.connect(), try daemon.connect())
        for round in 0..<3 {
            let ids = (round..<round + 3).map(String.init)
            for id in ids { #expect(try connection.create(collection, id, #"{"n":\#(id)}"#).result != nil) }
            #expect(try other.item(collection, ids[2]) == #"{"n":\#(ids[2])}"#)
            #expect(try query(other, collection) == ids.filter { $0 > "1" })
            #expect(try collections(connection) == [collection])
            let drop = Self.drop(collection)
            #expect(try connection.call(drop.method, drop.params).result?["dropped"]?.boolean == true)
            try connection.awaitRemovals()
            #expect(try other.item(collection, ids[2]) == nil)
            #expect(try query(other, collection).isEmpty)
            #expect(try collections(connection).isEmpty)
            #expect(try connection.call(drop.method, drop.params).result?.text == #"{"dropped":false}"#)
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        #expect(!daemon.log.contains("error"), "\(daemon.log)")
    }

    /// Requests on one connection take effect in the order in which they were sent.
    @Test(arguments: names)
    func itIsInOrderWithOtherRequests(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let count = ("record.count", #"{"collection":"\#(collection)"}"#)
        let replies = try connection.pipeline([
            Self.create(collection, "1"), Self.create(collection, "2"), count, Self.drop(collection, ifEmpty: true),
            count, Self.drop(collection), count, Self.create(collection, "1"), count,
        ])
        #expect(replies[3].error?.name == "record_exists")
        #expect(replies[5].result?["dropped"]?.boolean == true)
        #expect(replies[7].result != nil)
        #expect([2, 4, 6, 8].map { replies[$0].result?["count"]?.integer } == [2, 2, 0, 1])
    }

    @Test func ifEmptyDropsWhatHasNoRecord() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        for name in Self.names[..<3] {
            #expect(try connection.create(name, "1", "{}").result != nil)
            let drop = Self.drop(name, ifEmpty: true)
            #expect(try connection.call(drop.method, drop.params).error?.name == "record_exists")
            #expect(try connection.item(name, "1") == "{}")
            #expect(try connection.delete(name, "1").result != nil)
            #expect(try connection.call(drop.method, drop.params).result?["dropped"]?.boolean == true)
        }
        #expect(try collections(connection).isEmpty)
    }

    /// What a pattern has brought into being is forgotten; what the configuration names stays.
    @Test func itIsNeitherListedNorCounted() throws {
        var configuration = Self.configuration
        configuration.collections += "\nmemory named: {backend: memory}"
        var daemon = try Daemon(configuration)
        var connection = try daemon.connect()
        for name in ["memory 1", "memory 2", "sqlite 3", "memory named"] {
            #expect(try connection.create(name, "1", "{}").result != nil)
        }
        #expect(try connection.create("memory 4", "1", "{}").error?.name == "limit_exceeded")
        for name in ["memory 1", "sqlite 3", "memory named"] {
            let drop = Self.drop(name)
            #expect(try connection.call(drop.method, drop.params).result?["dropped"]?.boolean == true)
        }
        #expect(try connection.create("memory 4", "1", "{}").result != nil)
        #expect(try collections(connection).sorted() == ["memory 2", "memory 4", "memory named"])
        try daemon.stop()
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        #expect(try collections(connection).sorted() == ["memory 2", "memory 4", "memory named"])
        #expect(try connection.create("sqlite 3", "2", "{}").result != nil)
        #expect(try connection.create("sqlite 4", "2", "{}").error?.name == "limit_exceeded")
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as other users"))
    func itIsForAdministrators() throws {
        var configuration = Self.configuration
        configuration.socket = #"mode: "0666""#
        configuration.access = "- {users: [65534], allow: [read, write]}"
        let daemon = try Daemon(configuration)
        let peer = try daemon.connect(as: Peer(user: 65534, group: 65534))
        #expect(try peer.create("memory", "1", "{}").result != nil)
        let drop = Self.drop("memory")
        #expect(try peer.call(drop.method, drop.params).error?.name == "permission_denied")
        #expect(try peer.item("memory", "1") == "{}")
        let unmapped = Self.drop("unmapped")
        #expect(try daemon.connect().call(unmapped.method, unmapped.params).error?.name == "collection_not_found")
    }

    /// Nobody notices more than that the records are gone, whatever is in flight.
    @Test(arguments: ["sqlite", "sqlite-child", "memory"])
    func othersReadAndWriteMeanwhile(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let administrator = try daemon.connect()
        let others = try (0..<4).map { _ in try daemon.connect() }
        let requests: [(method: String, params: String)] = (0..<200).flatMap { number in
            [
                ("record.upsert", Connection.params(collection, "\(number)", item: #"{"n":\#(number)}"#)),
                ("record.read", Connection.params(collection, "\(number)")),
                (
                    "record.query",
                    #"{"collection":"\#(collection)","filter":{"op":">","args":[{"property":"n"},1]},"limit":5}"#
                ),
                ("record.count", #"{"collection":"\#(collection)","filter":true}"#),
            ]
        }
        for connection in others {
            for (number, request) in requests.enumerated() {
                try connection.sendFrame(Connection.request(request.method, request.params, id: "\(number)"))
            }
        }
        for _ in 0..<20 {
            let drop = Self.drop(collection)
            #expect(try administrator.call(drop.method, drop.params).error == nil)
        }
        for connection in others {
            for _ in requests {
                let reply = try connection.receive()
                let name = reply.error?.name
                // A search whose indexes have gone cannot continue.
                #expect(name == nil || name == "record_not_found" || name == "unavailable", "\(reply)")
            }
        }
        let drop = Self.drop(collection)
        #expect(try administrator.call(drop.method, drop.params).result != nil)
        #expect(try administrator.create(collection, "1", #"{"n":2}"#).result != nil)
        #expect(try query(administrator, collection) == ["1"])
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// What has been dropped leaves nothing behind, and the others are not touched by that.
    @Test func dropsDoNotAccumulate() throws {
        let daemon = try Daemon(Configuration(backends: "main: {plugin: memory}"))
        let connection = try daemon.connect()
        func create(_ names: [String]) throws {
            let replies = try connection.pipeline(
                names.map { ("record.create", Connection.params($0, "a", item: "1")) })
            try #require(replies.allSatisfy { $0.result != nil })
        }
        for start in stride(from: 0, to: 2000, by: 200) { try create((start..<start + 200).map { "c\($0)" }) }
        func drop(_ count: Int) throws {
            for number in 0..<count {
                try create(["dropped \(number)"])
                let reply = try connection.call("collection.drop", #"{"collection":"dropped \#(number)"}"#)
                try #require(reply.result?["dropped"]?.boolean == true, "\(reply)")
            }
        }
        try drop(20)
        let before = try daemon.residentBytes
        try drop(200)
        let grown = try daemon.residentBytes - before
        #expect(grown < 6 << 20, "\(grown)")
        #expect(try connection.item("c1999", "a") == "1")
    }
}
