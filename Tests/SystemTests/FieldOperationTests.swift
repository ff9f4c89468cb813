import CRUDTestSupport
import Glibc
import Testing

/// The field operations of `record.patch`.
@Suite(.daemon(Backends.configuration, loops: [nil, 4])) struct FieldOperationTests {
    @Test(arguments: Backends.collections)
    func comeBesideThePatchOrInsteadOfIt(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/field operations"
        let first = try connection.create(collection, "a", #"{"name":"Ada","visits":1}"#)
        let reply = try connection.change(
            collection, "a", ["increment": #"{"visits":1,"spent.total":0.1}"#, "add": #"{"tags":["new"]}"#])
        let item = #"{"name":"Ada","visits":2,"spent":{"total":0.1},"tags":["new"]}"#
        #expect(reply.result?["item"]?.text == item)
        #expect(try connection.item(collection, "a") == item)
        #expect(reply.result?["revision"]?.text != first.result?["revision"]?.text)
        // They see what the patch has made.
        let both = try connection.patch(
            collection, "a", #"{"name":null,"spent":7,"visits":{"x":[1,2]}}"#,
            more: ["increment": #"{"spent":1}"#, "remove": #"{"visits.x":[1.0]}"#])
        #expect(both.result?["item"]?.text == #"{"visits":{"x":[2]},"spent":8,"tags":["new"]}"#)
        let upsert = try connection.change(collection, "b", ["maximum": #"{"n":3}"#, "upsert": "true"])
        #expect(upsert.result?["item"]?.text == #"{"n":3}"#)
        #expect(try connection.change(collection, "c", ["maximum": #"{"n":3}"#]).error?.name == "record_not_found")
        let stale = try connection.change(collection, "b", ["increment": #"{"n":3}"#, "ifRevision": #""none""#])
        #expect(stale.error?.name == "revision_mismatch")
        #expect(try connection.item(collection, "b") == #"{"n":3}"#)
    }

    /// What is refused changes nothing, whatever else the call asks for.
    @Test(arguments: Backends.collections)
    func takeEffectTogetherOrNotAtAll(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/refused"
        let item = #"{"n":1,"text":"x","big":1e1000,"list":[1]}"#
        _ = try connection.create(collection, "a", item)
        let refused: [([String: String], error: String, detail: String, value: String)] = [
            (["increment": #"{"n":1,"text":1}"#], "unsupported", "path", "text"),
            (["append": #"{"list":[2],"n":[1]}"#, "patch": #"{"x":1}"#], "unsupported", "path", "n"),
            (["increment": #"{"n":1}"#, "minimum": #"{"big":1}"#], "unsupported", "path", "big"),
            (["increment": #"{"n":1,"list.a":1}"#], "unsupported", "path", "list"),
            (["increment": #"{"n":1,"x":1e999999999}"#], "unsupported", "path", "x"),
            (["increment": #"{"n":"1"}"#], "invalid_params", "member", "increment"),
            (["increment": #"{"n":1}"#, "maximum": #"{"n":1}"#], "invalid_params", "member", "maximum"),
            (["increment": "1"], "invalid_params", "member", "increment"),
            ([:], "invalid_params", "member", "patch"), (["upsert": "true"], "invalid_params", "member", "patch"),
        ]
        for (members, name, detail, value) in refused {
            let error = try connection.change(collection, "a", members).error
            #expect(error?.name == name, "\(members)")
            #expect(error?.details?[detail]?.string == value, "\(members)")
            let operation = Self.operation(collection, "a", members)
            let batch = try connection.call("record.batch", #"{"operations":[\#(operation)]}"#)
            let found =
                batch.error?.details?["index"]?.integer == 0
                ? batch.error?.name
                : batch.result?["results"]?.elements?.first?["error"]?["data"]?["name"]?.string
            #expect(found == name, "\(members)")
        }
        #expect(try connection.item(collection, "a") == item)
    }

    private static func operation(_ collection: String, _ id: String, _ members: [String: String]) -> String {
        let params = Connection.params(collection, id, more: members)
        return #"{"op":"patch",\#(params.dropFirst())"#
    }

    /// Those of a batch see each other, and an atomic one takes them back.
    @Test(arguments: Backends.collections)
    func areOperationsOfBatches(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/batch of operations"
        _ = try connection.create(collection, "a", "{}")
        let increment = Self.operation(collection, "a", ["increment": #"{"n":0.1}"#])
        let batch = try connection.call("record.batch", #"{"operations":[\#(increment),\#(increment),\#(increment)]}"#)
        let items = batch.result?["results"]?.elements?.map { $0["result"]?["item"]?.text }
        #expect(items == [#"{"n":0.1}"#, #"{"n":0.2}"#, #"{"n":0.3}"#])
        guard backend != "files" else { return }
        let failing = Self.operation(collection, "none", ["increment": #"{"n":1}"#])
        let atomic = try connection.call(
            "record.batch", #"{"operations":[\#(increment),\#(failing)],"atomic":true}"#)
        #expect(atomic.error?.name == "record_not_found")
        #expect(try connection.item(collection, "a") == #"{"n":0.3}"#)
    }

    /// Long ones are applied on another thread, in their place among the requests of the connection.
    @Test(arguments: Backends.collections)
    func longOnesKeepTheirPlace(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/long operations"
        let values = "[" + (0..<10_000).map { "\"value \($0)\"" }.joined(separator: ",") + "]"
        var requests = [("record.create", Connection.params(collection, "a", item: #"{"n":0,"v":["value 1"]}"#))]
        for _ in 0..<4 {
            for members in [["increment": #"{"n":1}"#, "add": #"{"v":\#(values)}"#], ["increment": #"{"n":1}"#]] {
                requests.append(("record.patch", Connection.params(collection, "a", more: members)))
            }
        }
        let replies = try connection.pipeline(requests)
        #expect(replies.dropFirst().map { $0.result?["item"]?["n"]?.integer } == Array(1...8))
        let item = try connection.read(collection, "a").result?["item"]
        #expect(item?["v"]?.elements?.count == 10_000)
        #expect(item?["v"]?.elements?.first?.string == "value 1")
    }

    /// 64 clients count in one record: exactly, and none of them ever sees a conflict.
    @Test(arguments: Backends.collections, [nil, 4])
    func countExactly(backend: String, loops: Int?) async throws {
        let daemon = try Daemon.shared(loops: loops)
        let collection = "\(backend)/counter of operations"
        _ = try daemon.connect().upsert(collection, "n", #"{"count":0}"#)
        let (clients, rounds) = (64, 10)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<clients {
                let connection = try daemon.connect()
                group.addTask {
                    for _ in 0..<rounds {
                        let members = ["increment": #"{"count":0.1}"#, "add": #"{"clients":[\#(client)]}"#]
                        let reply = try connection.change(collection, "n", members)
                        guard reply.result != nil else { throw Failure("\(reply)") }
                    }
                }
            }
            try await group.waitForAll()
        }
        let item = try #require(try daemon.connect().read(collection, "n").result?["item"])
        #expect(item["count"]?.text == "64")
        #expect(item["clients"]?.elements?.compactMap(\.integer).sorted() == Array(0..<clients))
    }
}

/// What field operations must not make.
@Suite(.daemon(Configuration(limits: "item_bytes: 16KiB\njson_depth: 8"))) struct FieldOperationLimitTests {
    @Test func theResultIsAnItemLikeAnyOther() throws {
        let connection = try Daemon.shared.connect()
        _ = try connection.create("c", "a", #"{"n":1}"#)
        let text = "[\"\(String(repeating: "x", count: 9000))\"]"
        #expect(try connection.change("c", "a", ["append": #"{"l":\#(text)}"#]).result != nil)
        let refused: [([String: String], limit: String)] = [
            (["increment": #"{"n":1}"#, "append": #"{"l":\#(text)}"#], "item_bytes"),
            (["increment": #"{"n":1}"#, "add": #"{"a.b.c.d.e.f.g":[[1]]}"#], "json_depth"),
            (["increment": #"{"n":1,"a.b.c.d.e.f.g.h.i":1}"#], "json_depth"),
            (["increment": "{\((0...1000).map { "\"m\($0)\":1" }.joined(separator: ","))}"], "query_nodes"),
        ]
        for (members, limit) in refused {
            let error = try connection.change("c", "a", members).error
            #expect(error?.name == "limit_exceeded")
            #expect(error?.details?["limit"]?.string == limit)
        }
        #expect(try connection.read("c", "a").result?["item"]?["n"]?.integer == 1)
        #expect(
            try connection.change("c", "b", ["increment": #"{"a.b.c.d.e.f.g.h":1}"#, "upsert": "true"]).result != nil)
    }
}

/// Increments and the end of the daemon.
@Suite struct FieldOperationDurabilityTests {
    private static let sqlite = "plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}"
    private static let child = "isolation: process, \(sqlite)"
    private static let postgresql = "plugin: postgresql, options: \(PostgreSQLServer.options("main"))"

    /// Each acknowledged increment took effect once, and each other one at most once, whenever the daemon is killed.
    @Test(arguments: [(sqlite, 8), (child, 4), (postgresql, 4)])
    func countExactlyThroughKills(backend: String, kills: Int) throws {
        let installation = try Installation(Configuration(backends: "main: {\(backend)}"))
        var random = SeededGenerator(seed: 5)
        var counts = 0...0
        for _ in 0..<kills {
            let daemon = try Daemon(on: installation)
            let connections = try (0..<16).map { _ in try daemon.connect() }
            #expect(try connections[0].change("c", "n", ["increment": #"{"n":0}"#, "upsert": "true"]).result != nil)
            let (sent, acknowledged) = try Self.increment(
                connections, UInt.random(in: 20...200, using: &random), daemon)
            counts = counts.lowerBound + acknowledged...counts.upperBound + sent
            let again = try Daemon(on: installation)
            let count = try #require(try again.connect().read("c", "n").result?["item"]?["n"]?.integer)
            #expect(counts.contains(count), "\(count) is not within \(counts)")
            counts = count...count
            #expect(try again.stop() == .exited(0))
        }
    }

    /// Each connection has one increment in flight until the daemon is killed, after so many acknowledgements.
    private static func increment(
        _ connections: [Connection], _ acknowledgements: UInt, _ daemon: Daemon
    ) throws -> (sent: Int, acknowledged: Int) {
        let request = Connection.request(
            "record.patch", Connection.params("c", "n", more: ["increment": #"{"n":1}"#]), id: "1")
        var (sent, acknowledged) = (0, 0)
        for connection in connections {
            try connection.sendFrame(request)
            sent += 1
        }
        let deadline = Deadline()
        let interests = try connections.map { (try $0.pollDescriptor, POLLIN) }
        while acknowledged < acknowledgements {
            let events = try Descriptor.wait(for: interests, until: deadline)
            try #require(!deadline.hasPassed, "increments are not acknowledged")
            for (connection, event) in zip(connections, events) where event != 0 {
                #expect(try connection.receive().result != nil)
                acknowledged += 1
                try connection.sendFrame(request)
                sent += 1
            }
        }
        try daemon.kill()
        // Replies that were on their way count as well.
        for connection in connections {
            while let reply = try? connection.receive() {
                if reply.result != nil { acknowledged += 1 }
            }
        }
        return (sent, acknowledged)
    }
}

extension Connection {
    /// A patch with these members of `params`.
    func change(_ collection: String, _ id: String, _ members: [String: String]) throws -> Reply {
        try call("record.patch", Self.params(collection, id, more: members))
    }
}
