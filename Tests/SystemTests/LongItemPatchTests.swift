import CRUDTestSupport
import Glibc
import Synchronization
import Testing

/// Short patches of long items: how long the stored item is decides, not the patch.
@Suite(.daemon(Backends.configuration)) struct LongItemPatchTests {
    private static let item =
        #"{"n":0,"# + (0..<30_000).map { #""member \#($0)":1"# }.joined(separator: ",") + "}"

    /// A request that increments `n` of a record.
    private static func request(_ kind: String, _ collection: String, _ id: String, number: Int = 1) -> String {
        let increment = ["increment": #"{"n":1}"#]
        switch kind {
        case "patch":
            let more = ["patch": #"{"n":\#(number)}"#]
            return Connection.request("record.patch", Connection.params(collection, id, more: more), id: "\(number)")
        case "atomic":
            let params = Connection.params(collection, id, more: increment).dropFirst()
            let operation = #"{"op":"patch",\#(params)"#
            return Connection.request("record.batch", #"{"atomic":true,"operations":[\#(operation)]}"#, id: "\(number)")
        default:
            let params = Connection.params(collection, id, more: increment)
            return Connection.request("record.patch", params, id: "\(number)")
        }
    }

    /// Others write while items are made: more often than one is stored. Before, all patches that had come were applied
    /// first.
    @Test(arguments: ["patch", "increment", "atomic"])
    func othersWriteMeanwhile(kind: String) throws {
        let daemon = try Daemon()
        let witness = try daemon.connect()
        let patching = try (0..<20).map { number in
            let connection = try daemon.connect()
            #expect(try connection.create("c", "\(number)", Self.item).result != nil)
            return connection
        }
        let writes = try witness.mostWrites(of: "small", in: "c", over: patching) { Self.request(kind, "c", "\($0)") }
        #expect(writes > patching.count)
        #expect(try witness.read("c", "7", fields: #"["n"]"#).result?["item"]?["n"]?.integer ?? 0 >= 1)
        #expect(try daemon.stop() == .exited(0))
    }

    /// What one connection sends takes effect in order, long items and short ones mixed, in collections of one backend.
    @Test(arguments: Backends.collections)
    func keepsItsPlace(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/long item order"
        #expect(try connection.upsert(collection, "long", Self.item).result != nil)
        var requests: [(String, String)] = []
        func add(_ method: String, _ id: String, _ more: [String: String] = [:], item: String? = nil) {
            requests.append((method, Connection.params(collection, id, item: item, more: more)))
        }
        for number in 0..<3 {
            add("record.upsert", "a", item: #"{"n":\#(number)}"#)
            add("record.patch", "long", ["increment": #"{"n":1}"#])
            add("record.patch", "a", ["increment": #"{"n":10}"#])
            add("record.touch", "long", ["ttl": "null"])
            add("record.upsert", "b", item: "{}")
            add("record.patch", "b", ["patch": #"{"is":\#(number)}"#])
            add("record.delete", "a")
            add("record.patch", "a", ["patch": "{}"])
            requests.append(("record.deleteMatching", #"{"collection":"\#(collection)","prefix":"b"}"#))
            add("record.patch", "b", ["patch": "{}"])
        }
        let replies = try connection.pipeline(requests)
        for number in 0..<3 {
            let replies = replies[(number * 10)...].prefix(10).map { $0 }
            #expect(replies[1].result?["item"]?["n"]?.text == "\(number + 1)")
            #expect(replies[2].result?["item"]?["n"]?.text == "\(number + 10)")
            #expect(replies[3].result != nil || replies[3].error?.name == "unsupported")
            #expect(replies[5].result?["item"]?["is"]?.text == "\(number)")
            #expect(replies[6].result != nil)
            #expect(replies[7].error?.name == "record_not_found")
            #expect(replies[8].result?["deleted"]?.text == "1", "\(replies[8])")
            #expect(replies[9].error?.name == "record_not_found")
        }
    }

    /// No increment is lost beside others, atomic ones and other writes of the same record.
    @Test(arguments: ["main", "memory", "postgresql"])
    func noIncrementIsLost(backend: String) async throws {
        let collection = "\(backend)/long item counter"
        _ = try Daemon.shared.connect().upsert(collection, "n", Self.item)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
                let connection = try Daemon.shared.connect()
                group.addTask {
                    for number in 1...5 {
                        try connection.sendFrame(
                            Self.request(writer < 3 ? "increment" : "atomic", collection, "n", number: number))
                        let reply = try connection.receive()
                        guard reply.result != nil else { throw Failure("\(reply)") }
                    }
                }
            }
            try await group.waitForAll()
        }
        let item = try Daemon.shared.connect().read(collection, "n", fields: #"["n"]"#).result?["item"]
        #expect(item?["n"]?.text == "30")
    }

    /// With `atomic` the first operation that fails is named, and nothing is applied: also behind a long item.
    @Test func isPartOfATransaction() throws {
        let connection = try Daemon.shared.connect()
        let collection = "main/long item atomic"
        for id in ["a", "b"] { #expect(try connection.upsert(collection, id, Self.item).result != nil) }
        func operation(_ id: String) -> String {
            #"{"op":"patch",\#(Connection.params(collection, id, more: ["increment": #"{"n":1}"#]).dropFirst())"#
        }
        let list = [operation("a"), operation("b"), operation("a")]
        func call(_ operations: [String]) throws -> Reply {
            try connection.call(
                "record.batch", #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#)
        }
        let refused = try call(list + [operation("none")])
        #expect(refused.error?.name == "record_not_found")
        #expect(refused.error?.details?["index"]?.text == "3")
        #expect(try connection.read(collection, "a", fields: #"["n"]"#).result?["item"]?["n"]?.text == "0")
        #expect(try call(list).result?["results"]?.elements?.count == 3)
        #expect(try connection.read(collection, "a", fields: #"["n"]"#).result?["item"]?["n"]?.text == "2")
        #expect(try connection.read(collection, "b", fields: #"["n"]"#).result?["item"]?["n"]?.text == "1")
    }

    /// Every increment that was acknowledged is in the item where the collection is in the end, in every format.
    @Test func aMoveLosesNone() throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: main}"))
        let administrator = try daemon.connect()
        #expect(try administrator.create("c", "n", Self.item).result != nil)
        let connection = try daemon.connect()
        var count = 0
        for place in MovePlaces.all.dropFirst() {
            try daemon.installation.configure(MovePlaces.configuration(place))
            for number in 0..<3 {
                try connection.sendFrame(Self.request("increment", "c", "n", number: number))
            }
            try administrator.reloadMoving()
            for _ in 0..<3 {
                #expect(try connection.receive().result != nil)
                count += 1
            }
            try administrator.awaitMoves()
            #expect(try connection.read("c", "n", fields: #"["n"]"#).result?["item"]?["n"]?.text == "\(count)")
        }
        #expect(try daemon.stop() == .exited(0))
    }

    private final class MoveFlag: Sendable {
        let areOver = Atomic(false)
    }

    /// Patches go on while a collection moves from place to place: none that was acknowledged is lost, and none is made
    /// twice.
    @Test func patchesContinueBesideMoves() async throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: main}"))
        let administrator = try daemon.connect()
        let (path, ids) = (daemon.socketPath, ["a", "b", "c"])
        for id in ids { #expect(try administrator.create("c", id, Self.item).result != nil) }
        let moves = MoveFlag()
        let counts = try await withThrowingTaskGroup(of: (String, Int).self) { group in
            defer { moves.areOver.store(true, ordering: .relaxed) }
            for (number, id) in (ids + ids).enumerated() {
                let kind = number < ids.count ? "increment" : "atomic"
                group.addTask {
                    let connection = try Connection(to: path)
                    var count = 0
                    repeat {
                        try connection.sendFrame(Self.request(kind, "c", id, number: count))
                        let reply = try connection.receive()
                        guard reply.result != nil else { throw Failure("\(reply)") }
                        count += 1
                    } while !moves.areOver.load(ordering: .relaxed)
                    return (id, count)
                }
            }
            for place in MovePlaces.all.dropFirst() {
                try daemon.installation.configure(MovePlaces.configuration(place))
                try administrator.reloadMoving()
                try administrator.awaitMoves()
            }
            moves.areOver.store(true, ordering: .relaxed)
            var counts: [String: Int] = [:]
            for try await (id, count) in group { counts[id, default: 0] += count }
            return counts
        }
        for id in ids {
            let item = try administrator.read("c", id, fields: #"["n"]"#).result?["item"]
            #expect(item?["n"]?.integer == counts[id])
        }
        #expect(try daemon.stop() == .exited(0))
    }

    /// A record that expires while its item is made is gone: no patch stores it again. What is stored before keeps its
    /// instant.
    @Test(arguments: ["sqlite", "memory"], ["increment", "atomic"])
    func aRecordExpiresMeanwhile(plugin: String, kind: String) throws {
        let clock = try SetClock()
        let options = plugin == "sqlite" ? ", options: {path: $DIRECTORY/main.sqlite}" : ""
        let configuration = Configuration(backends: "main: {plugin: \(plugin)\(options)}")
        let daemon = try Daemon(on: Installation(configuration), environment: clock.environment)
        let witness = try daemon.connect()
        func create(_ id: String) throws {
            let params = Connection.params("c", id, item: Self.item, more: ["ttl": "3600"])
            #expect(try witness.call("record.create", params).result != nil)
        }
        try create("kept")
        let instant = try witness.read("c", "kept", fields: "[]").result?["expiresAt"]?.text
        try witness.sendFrame(Self.request(kind, "c", "kept"))
        #expect(try witness.receive().result != nil)
        let kept = try witness.read("c", "kept", fields: #"["n"]"#).result
        #expect(kept?["item"]?["n"]?.text == "1")
        #expect(instant != nil && kept?["expiresAt"]?.text == instant)
        let patching = try (0..<20).map { number in
            try create("\(number)")
            return try daemon.connect()
        }
        for (number, connection) in patching.enumerated() {
            try connection.sendFrame(Self.request(kind, "c", "\(number)"))
        }
        // One has been stored then, and others are being made.
        while try !patching.contains(where: { try $0.hasSomethingToRead() }) {}
        try clock.set(forward: 7200)
        var expired = 0
        for connection in patching {
            let reply = try connection.receive()
            if reply.result == nil {
                #expect(reply.error?.name == "record_not_found", "\(reply)")
                expired += 1
            }
        }
        #expect(expired > 0)
        for number in patching.indices {
            #expect(try witness.read("c", "\(number)", fields: "[]").error?.name == "record_not_found")
        }
        #expect(try daemon.stop() == .exited(0))
    }

    /// A child that is killed meanwhile: what was acknowledged is there, and nothing that was refused.
    @Test func aLostChildLosesNone() throws {
        let daemon = try ChildDaemon(["sqlite"]).daemon
        let administrator = try daemon.connect()
        #expect(try administrator.create("sqlite", "n", Self.item).result != nil)
        var (least, most) = (0, 0)
        for _ in 0..<3 {
            let connections = try (0..<4).map { _ in try daemon.connect() }
            for connection in connections {
                try connection.sendFrame(Self.request("increment", "sqlite", "n"))
            }
            #expect(try connections[0].receive().result != nil)
            least += 1
            most += 1
            let pid = try #require(try ChildDaemon.status(of: "sqlite", administrator).pid)
            kill(pid, SIGKILL)
            for connection in connections.dropFirst() {
                let reply = try connection.receive()
                if reply.result != nil { least += 1 }
                if reply.result != nil || reply.error?.name == "outcome_unknown" { most += 1 }
            }
            try ChildDaemon.awaitReady("sqlite", notWith: pid, administrator)
            let item = try administrator.read("sqlite", "n", fields: #"["n"]"#).result?["item"]
            let number = try #require(item?["n"]?.integer)
            #expect(least...most ~= number)
            (least, most) = (number, number)
        }
        #expect(try daemon.stop() == .exited(0))
    }
}
