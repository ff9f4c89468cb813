import CRUDTestSupport
import Testing

/// Who may do what. Peers of other users are real: the kernel tells the daemon who they are.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to connect as other users")) struct AccessTests {
    private static let nobody = Peer(user: 65534, group: 65534)
    private static let daemonUser = Peer(user: 1, group: 1)

    @Test func withoutRulesEverybodyReadsAndWritesAndRootIsAdmin() throws {
        let daemon = try Daemon(Configuration(socket: #"mode: "0666""#))
        let peer = try daemon.connect(as: Self.nobody)
        #expect(try peer.create("c", "a", "1").result != nil)
        #expect(try peer.item("c", "a") == "1")
        #expect(try peer.delete("c", "a").result != nil)
        #expect(try peer.call("collection.list").result?["collections"]?.elements?.count == 1)
        try expectDenied(
            peer.call("backend.list"), peer.call("plugin.list"), peer.call("daemon.status"),
            peer.call("collection.reindex", #"{"collection":"c"}"#))
        try expectOpenMethods(peer)
        #expect(try daemon.connect().call("daemon.status").result != nil)
    }

    @Test func whatNoRuleMatchesIsDenied() throws {
        let daemon = try daemon("- {users: [1], allow: [read, write]}")
        let root = try daemon.connect()
        #expect(try root.create("c", "a", "1").result != nil)
        let peer = try daemon.connect(as: Self.nobody)
        try expectNoReading(peer, "c")
        try expectNoWriting(peer, "c")
        #expect(try peer.call("collection.list").result?["collections"]?.elements?.isEmpty == true)
        try expectOpenMethods(peer)
        #expect(try root.item("c", "a") == "1")
        let other = try daemon.connect(as: Self.daemonUser)
        #expect(try other.item("c", "a") == "1")
        #expect(try other.upsert("c", "a", "2").result != nil)
    }

    @Test func readingAndWritingAreSeparate() throws {
        let daemon = try daemon("- {users: [65534], allow: [read]}\n- {users: [1], allow: [write]}")
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        let reader = try daemon.connect(as: Self.nobody)
        #expect(try reader.item("c", "a") == "1")
        #expect(try reader.exists("c", "a") == true)
        #expect(try reader.readMany("c", ["a"]).result != nil)
        #expect(try reader.call("collection.describe", #"{"collection":"c"}"#).result != nil)
        try expectNoWriting(reader, "c")
        #expect(try reader.item("c", "a") == "1")
        let writer = try daemon.connect(as: Self.daemonUser)
        #expect(try writer.create("c", "b", "1").result != nil)
        #expect(try writer.update("c", "a", "2").result != nil)
        #expect(try writer.upsert("c", "a", "3").result != nil)
        #expect(try writer.delete("c", "b").result != nil)
        try expectNoReading(writer, "c")
        #expect(try reader.item("c", "a") == "3")
    }

    @Test func rulesMayNameCollections() throws {
        let rules = """
            - {users: [65534], collections: [open, "Clients Database"], allow: [read, write]}
            - {users: [65534], collections: [shelf], allow: [read]}
            """
        let daemon = try daemon(rules)
        let root = try daemon.connect()
        for name in ["open", "Clients Database", "shelf", "secret"] {
            #expect(try root.create(name, "a", "1").result != nil)
        }
        let peer = try daemon.connect(as: Self.nobody)
        #expect(try peer.upsert("open", "a", "2").result != nil)
        #expect(try peer.upsert("Clients Database", "a", "2").result != nil)
        #expect(try peer.item("shelf", "a") == "1")
        try expectNoWriting(peer, "shelf")
        for name in ["secret", "Open", "clients Database", "never written to"] {
            try expectNoReading(peer, name)
            try expectNoWriting(peer, name)
        }
        let listed = try peer.call("collection.list").result?["collections"]?.elements
        #expect(listed?.compactMap { $0["name"]?.string }.sorted() == ["Clients Database", "open", "shelf"])
        #expect(try root.call("collection.list").result?["collections"]?.elements?.count == 4)
        #expect(try root.item("secret", "a") == "1")
    }

    @Test func theFirstRuleThatMatchesDecides() throws {
        let rules = """
            - {users: [65534], collections: [ledger], allow: [read]}
            - {allow: [read, write]}
            """
        let daemon = try daemon(rules)
        let peer = try daemon.connect(as: Self.nobody)
        try expectNoWriting(peer, "ledger")
        #expect(try peer.create("c", "a", "1").result != nil)
        let other = try daemon.connect(as: Self.daemonUser)
        #expect(try other.create("ledger", "a", "1").result != nil)
        #expect(try peer.item("ledger", "a") == "1")
    }

    @Test func groupsCountFirstAndFurtherOnes() throws {
        let daemon = try daemon("- {groups: [60001], allow: [read]}\n- {users: [65534], allow: [write]}")
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        for peer in [
            Peer(user: 65534, group: 60001), Peer(user: 65534, group: 65534, supplementaryGroups: [60000, 60001]),
            Peer(user: 60002, group: 60002, supplementaryGroups: [60001]),
        ] {
            let connection = try daemon.connect(as: peer)
            #expect(try connection.item("c", "a") == "1")
            try expectNoWriting(connection, "c")
        }
        try expectNoReading(daemon.connect(as: Self.nobody), "c")
        try expectNoReading(
            daemon.connect(as: Peer(user: 60001, group: 60002, supplementaryGroups: [60003])), "c")
    }

    @Test func adminIsARightOfItsOwn() throws {
        let daemon = try daemon("- {users: [65534], allow: [admin]}\n- {users: [1], allow: [read, write]}")
        let admin = try daemon.connect(as: Self.nobody)
        for method in ["backend.list", "plugin.list", "daemon.status"] {
            #expect(try admin.call(method).result != nil, "\(method)")
        }
        try expectNoReading(admin, "c")
        try expectNoWriting(admin, "c")
        let user = try daemon.connect(as: Self.daemonUser)
        try expectDenied(user.call("backend.list"), user.call("plugin.list"), user.call("daemon.status"))
        let root = try daemon.connect()
        #expect(try root.create("c", "a", "1").result != nil)
        #expect(try root.call("backend.list").result != nil)
    }

    @Test func accessIsCheckedBeforeExistence() throws {
        let daemon = try Daemon(
            Configuration(
                socket: #"mode: "0666""#, collections: "known: {backend: main}",
                access: "- {users: [65534], collections: [other], allow: [read]}"))
        #expect(try daemon.connect().create("known", "a", "1").result != nil)
        let peer = try daemon.connect(as: Self.nobody)
        for id in ["a", "missing"] {
            try expectDenied(peer.read("known", id), peer.create("known", id, "1"), peer.delete("known", id))
        }
        try expectDenied(peer.read("unknown", "a"), peer.create("unknown", "a", "1"))
        #expect(try peer.read("other", "a").error?.name == "collection_not_found")
    }

    @Test func deniedWritesOfNotificationsAndBatchesDoNothing() throws {
        let daemon = try daemon("- {users: [65534], allow: [read]}")
        let root = try daemon.connect()
        #expect(try root.create("c", "a", "1").result != nil)
        let peer = try daemon.connect(as: Self.nobody)
        try peer.sendFrame(Connection.notification("record.delete", Connection.params("c", "a")))
        let delete = Connection.request("record.delete", Connection.params("c", "a"), id: "1")
        try peer.sendFrame("[\(delete)]")
        #expect(try peer.receiveBatch().map(\.error?.name) == ["permission_denied"])
        #expect(try root.item("c", "a") == "1")
    }

    private func daemon(_ rules: String) throws -> Daemon {
        try Daemon(Configuration(socket: #"mode: "0666""#, access: rules))
    }

    private func expectDenied(_ replies: Reply..., sourceLocation: SourceLocation = #_sourceLocation) {
        for reply in replies {
            #expect(reply.error?.code == -32005, "\(reply)", sourceLocation: sourceLocation)
        }
    }

    private func expectNoReading(
        _ peer: Connection, _ collection: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let describe = #"{"collection":\#(JSON.quote(collection))}"#
        expectDenied(
            try peer.read(collection, "a"), try peer.read(collection, "missing"),
            try peer.readMany(collection, ["a", "missing"]),
            try peer.call("record.exists", Connection.params(collection, "a")),
            try peer.call("collection.describe", describe), try peer.call("collection.changes", describe),
            sourceLocation: sourceLocation)
    }

    private func expectNoWriting(
        _ peer: Connection, _ collection: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        expectDenied(
            try peer.create(collection, "new", "1"), try peer.create(collection, "a", "1"),
            try peer.update(collection, "a", "9"), try peer.upsert(collection, "a", "9"),
            try peer.delete(collection, "a"), try peer.delete(collection, "missing"), sourceLocation: sourceLocation)
    }

    private func expectOpenMethods(_ peer: Connection) throws {
        for method in ["daemon.ping", "session.hello", "rpc.discover", "collection.list"] {
            #expect(try peer.call(method).result != nil, "\(method)")
        }
    }
}
