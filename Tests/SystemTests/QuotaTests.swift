import CRUDTestSupport
import Testing

/// What users may store: `collections`, `records` and `bytes` in the `limits` of access rules.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to connect as another user")) struct QuotaTests {
    private static let limited = Peer(user: 65534, group: 65534)
    private static let other = Peer(user: 65533, group: 65533)

    private static func configuration(_ limits: String, backends: String? = nil) -> Configuration {
        var configuration = Configuration(
            socket: #"mode: "0666""#,
            access: """
                - {users: [65534], allow: [read, write], limits: \(limits)}
                - {users: [65533], allow: [read, write]}
                """, limits: "sessions_per_user: 100")
        if let backends { configuration.backends = backends }
        return configuration
    }

    private static func isRefused(_ reply: Reply, _ limit: String, _ maximum: Int) -> Bool {
        guard let error = reply.error else { return false }
        return error.name == "limit_exceeded" && error.details?["limit"]?.string == limit
            && error.details?["maximum"]?.text == "\(maximum)"
    }

    private static func names(_ connection: Connection) throws -> Int {
        try #require(try connection.call("collection.list").result?["collections"]?.elements).count
    }

    private static func quota(_ name: String, of user: Int, _ admin: Connection) throws -> JSON? {
        let sessions = try #require(try admin.call("session.list").result?["sessions"]?.elements)
        return sessions.first { $0["uid"]?.text == "\(user)" }?["quotas"]?[name]
    }

    /// Calls until the reply is as wanted, with the number of the call in place of NUMBER: quotas of records and bytes
    /// lag.
    private static func call(
        _ connection: Connection, _ method: String, _ params: String, until isWanted: (Reply) -> Bool
    ) throws -> Bool {
        let deadline = Deadline()
        var number = 0
        while !deadline.hasPassed {
            if isWanted(try connection.call(method, params.replacing("NUMBER", with: "\(number)"))) { return true }
            number += 1
        }
        return false
    }

    @Test func sixtyFourClientsOfAUserMakeAsManyCollectionsAsItMayOwn() throws {
        let daemon = try Daemon(Self.configuration("{collections: 1000}", backends: "main: {plugin: memory}"))
        let clients = try (0..<64).map { _ in try daemon.connect(as: Self.limited) }
        let other = try daemon.connect(as: Self.other)
        var (made, refused) = (0, 0)
        for round in 0..<20 {
            for (number, client) in clients.enumerated() {
                let params = Connection.params("c\(round)-\(number)", "1", item: "1")
                try client.sendFrame(Connection.request("record.create", params, id: "1"))
            }
            for client in clients {
                let reply = try client.receive()
                if reply.result != nil { made += 1 }
                if Self.isRefused(reply, "collections", 1000) { refused += 1 }
            }
            #expect(try other.create("other", "\(round)", "1").result != nil)
        }
        #expect(made == 1000 && refused == 280)
        let admin = try daemon.connect()
        #expect(try Self.names(admin) == 1001)
        let quota = try Self.quota("collections", of: 65534, admin)
        #expect(quota?["used"]?.text == "1000" && quota?["maximum"]?.text == "1000")
        #expect(try Self.quota("collections", of: 65533, admin) == nil)
        // What exists can be written and emptied; a drop, which an administrator makes, frees one.
        #expect(try clients[0].create("c0-0", "2", "1").result != nil)
        #expect(try clients[0].delete("c0-0", "2").result != nil)
        #expect(Self.isRefused(try clients[1].create("more", "1", "1"), "collections", 1000))
        #expect(try admin.call("collection.drop", #"{"collection":"c0-0"}"#).result != nil)
        #expect(try clients[1].create("more", "1", "1").result != nil)
        #expect(Self.isRefused(try clients[2].create("most", "1", "1"), "collections", 1000))
    }

    @Test func ownersAndTheirCountsSurviveRestartsMovesAndReloads() throws {
        let backends = """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            second: {plugin: sqlite, options: {path: $DIRECTORY/second.sqlite}}
            """
        var configuration = Self.configuration("{collections: 2}", backends: backends)
        let first = try Daemon(configuration)
        let client = try first.connect(as: Self.limited)
        for name in ["a", "b"] { #expect(try client.create(name, "1", "1").result != nil) }
        #expect(Self.isRefused(try client.create("c", "1", "1"), "collections", 2))
        #expect(try first.stop() == .exited(0))

        let daemon = try first.restarted()
        let again = try daemon.connect(as: Self.limited)
        let admin = try daemon.connect()
        #expect(Self.isRefused(try again.create("c", "1", "1"), "collections", 2))
        // A collection that moves keeps its owner.
        configuration.collections = #"a: {backend: second, move: true}"# + "\n" + #""*": {backend: main}"#
        try daemon.installation.configure(configuration)
        #expect(try admin.call("daemon.reload").result != nil)
        #expect(
            try Self.call(admin, "collection.describe", #"{"collection":"a"}"#) {
                $0.result?["backend"]?.string == "second"
            })
        #expect(Self.isRefused(try again.create("c", "1", "1"), "collections", 2))
        // Nobody loses anything to a lower limit.
        configuration.access = configuration.access?.replacing("collections: 2", with: "collections: 1")
        try daemon.installation.configure(configuration)
        #expect(try admin.call("daemon.reload").result != nil)
        for name in ["a", "b"] { #expect(try again.create(name, "2", "2").result != nil) }
        #expect(try admin.call("collection.drop", #"{"collection":"b"}"#).result != nil)
        #expect(Self.isRefused(try again.create("c", "1", "1"), "collections", 1))
        configuration.access = configuration.access?.replacing("collections: 1", with: "collections: 2")
        try daemon.installation.configure(configuration)
        #expect(try admin.call("daemon.reload").result != nil)
        #expect(try again.create("c", "1", "1").result != nil)
    }

    @Test func anAtomicBatchAtAQuotaIsRefusedWhole() throws {
        let daemon = try Daemon(Self.configuration("{collections: 3}"))
        let client = try daemon.connect(as: Self.limited)
        let admin = try daemon.connect()
        #expect(try client.create("a", "1", "1").result != nil)
        func batch(_ names: [String]) -> String {
            let operations = names.map { #"{"op":"create","collection":"\#($0)","id":"2","item":1}"# }
            return #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#
        }
        #expect(Self.isRefused(try client.call("record.batch", batch(["a", "b", "c", "d"])), "collections", 3))
        #expect(try Self.names(admin) == 1)
        #expect(try client.exists("a", "2") == false)
        #expect(try client.call("record.batch", batch(["a", "b", "c"])).result != nil)
        #expect(try Self.names(admin) == 3)
    }

    @Test func recordsAreBoundedAndDeletionsAreNot() throws {
        let daemon = try Daemon(Self.configuration("{records: 50}"))
        let client = try daemon.connect(as: Self.limited)
        let other = try daemon.connect(as: Self.other)
        let admin = try daemon.connect()
        #expect(
            try Self.call(client, "record.create", Connection.params("mine", "NUMBER", item: "1")) {
                Self.isRefused($0, "records", 50)
            })
        // Records are changed and deleted, and none comes in addition, be it here, in a batch or by others.
        #expect(try client.update("mine", "0", "2").result != nil)
        for op in ["create", "upsert"] {
            #expect(
                Self.isRefused(
                    try client.call("record.\(op)", Connection.params("mine", "new", item: "1")), "records", 50))
        }
        let operations =
            #"[{"op":"delete","collection":"mine","id":"0"},{"op":"create","collection":"mine","id":"x","item":1}]"#
        let batch = try client.call("record.batch", #"{"atomic":true,"operations":\#(operations)}"#)
        #expect(Self.isRefused(batch, "records", 50) && batch.error?.details?["index"]?.text == "1")
        #expect(try client.exists("mine", "0") == true)
        #expect(Self.isRefused(try other.create("mine", "new", "1"), "records", 50), "the owner is charged")
        #expect(Self.isRefused(try client.create("second", "1", "1"), "records", 50))
        // The others, and root, are not concerned.
        #expect(try other.create("theirs", "1", "1").result != nil)
        #expect(try client.create("theirs", "2", "1").result != nil, "whose owner has no limit")
        #expect(try admin.create("mine", "root", "1").result != nil)
        let quota = try #require(try Self.quota("records", of: 65534, admin))
        #expect(quota["maximum"]?.text == "50" && (quota["used"]?.text).flatMap(Int.init) ?? 0 >= 50)
        let samples = try admin.metrics()
        #expect(samples[#"crudd_user_records{uid="65534"}"#] ?? 0 >= 50)
        #expect(samples[#"crudd_user_quota{quota="records",uid="65534"}"#] == 50)
        #expect(samples[#"crudd_user_collections{uid="65534"}"#] == 1)

        // Deletions make room, after a while.
        #expect(try client.delete("mine", "0").result != nil)
        #expect(try client.call("record.deleteMatching", #"{"collection":"mine","all":true}"#).result != nil)
        #expect(
            try Self.call(client, "record.create", Connection.params("mine", "after", item: "1")) {
                $0.result != nil
            })
    }

    @Test func bytesAreBoundedAfterARestartAndByALowerLimit() throws {
        let first = try Daemon(Self.configuration("{bytes: 1MiB}"))
        let client = try first.connect(as: Self.limited)
        let item = #""\#(String(repeating: "x", count: 10_000))""#
        for id in 0..<50 { #expect(try client.create("mine", "\(id)", item).result != nil) }
        #expect(try first.stop() == .exited(0))

        try first.installation.configure(Self.configuration("{bytes: 100KiB}"))
        let daemon = try first.restarted()
        let again = try daemon.connect(as: Self.limited)
        #expect(
            try Self.call(again, "record.update", Connection.params("mine", "0", item: item)) {
                Self.isRefused($0, "bytes", 102_400)
            })
        let patch = try again.call("record.patch", #"{"collection":"mine","id":"0","patch":{"a":1}}"#)
        #expect(Self.isRefused(patch, "bytes", 102_400))
        for id in 1..<50 { #expect(try again.delete("mine", "\(id)").result != nil) }
        #expect(
            try Self.call(again, "record.update", Connection.params("mine", "0", item: item)) {
                $0.result != nil
            })
        let admin = try daemon.connect()
        for limit in ["1KiB", "1MiB"] {
            try daemon.installation.configure(Self.configuration("{bytes: \(limit)}"))
            #expect(try admin.reload() == ["access: changed"])
            #expect(
                try Self.call(again, "record.update", Connection.params("mine", "0", item: item)) {
                    limit == "1KiB" ? Self.isRefused($0, "bytes", 1024) : $0.result != nil
                })
        }
    }
}
