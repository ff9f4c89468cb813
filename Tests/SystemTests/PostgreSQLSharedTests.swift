import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization
import Testing

/// Several daemons that write one schema at once.
@Suite struct PostgreSQLSharedTests {
    /// How often each client writes, and how many rounds of batches there are; by the environment more.
    private static let rounds = getenv("CRUDD_SHARED_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 40

    private static func daemons(_ count: Int, _ schema: String) throws -> [Daemon] {
        let server = try PostgreSQLServer.shared()
        let options = #"{connection: "\#(server.connection)", schema: \#(schema), shared: true}"#
        return try (0..<count).map { _ in
            try Daemon(Configuration(backends: "main: {plugin: postgresql, options: \(options)}"))
        }
    }

    /// What a client does to count by one; false where another client was quicker.
    enum Increment: CaseIterable {
        case byRevision, byFieldOperation, byPatch

        func make(_ connection: Connection) throws -> Bool {
            if self == .byFieldOperation {
                let reply = try connection.call(
                    "record.patch", Connection.params("c", "n", more: ["increment": #"{"n":1}"#]))
                if reply.error != nil { throw Failure("\(reply)") }
                return true
            }
            let current = try connection.read("c", "n")
            guard let number = current.result?["item"]?["n"]?.integer,
                let revision = current.result?["revision"]?.string
            else { throw Failure("\(current)") }
            let change = #"{"n":\#(number + 1)}"#
            let reply =
                self == .byRevision
                ? try connection.update("c", "n", change, ifRevision: revision)
                : try connection.call(
                    "record.patch", Connection.params("c", "n", ifRevision: revision, more: ["patch": change]))
            switch reply.error?.name {
            case nil: return true
            case "revision_mismatch": return false
            default: throw Failure("\(reply)")
            }
        }
    }

    @Test(arguments: Increment.allCases)
    func contendedIncrementsAreExact(_ increment: Increment) throws {
        let daemons = try Self.daemons(3, "shared \(increment)")
        #expect(try daemons[0].connect().create("c", "n", #"{"n":0}"#).result != nil)
        let errors = Mutex<[String]>([])
        let threads = try (0..<6).map { client in
            try Thread(named: "client") {
                do {
                    let connection = try daemons[client % 3].connect()
                    var done = 0
                    while done < Self.rounds { done += try increment.make(connection) ? 1 : 0 }
                } catch {
                    errors.withLock { $0.append("\(error)") }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(errors.withLock(\.self) == [])
        for daemon in daemons {
            #expect(try daemon.connect().item("c", "n") == #"{"n":\#(6 * Self.rounds)}"#)
        }
    }

    /// Of clients that increment one record, at three daemons and a server whose commits take 10 ms, each has its turn.
    @Test func contendedIncrementsTakeTurns() throws {
        let server = try PostgreSQLServer(settings: ["commit_delay": "10000", "commit_siblings": "0"])
        let options = #"{connection: "\#(server.connection)", shared: true}"#
        let daemons = try (0..<3).map { _ in
            try Daemon(Configuration(backends: "main: {plugin: postgresql, options: \(options)}"))
        }
        #expect(try daemons[0].connect().create("c", "n", #"{"n":0}"#).result != nil)
        var total = 0
        // A busy machine may give one of the daemons less time: in one of the rounds it does not.
        let haveTurns = try (0..<3).contains { _ in
            let counts = try Self.increments(by: daemons)
            total += counts.reduce(0, +)
            return (counts.min() ?? 0) * 3 > Self.rounds * 4
        }
        #expect(haveTurns)
        #expect(try daemons[1].connect().item("c", "n") == #"{"n":\#(total)}"#)
    }

    /// How often a client at each daemon has incremented a record, from when all are connected until one is done.
    private static func increments(by daemons: [Daemon]) throws -> [Int] {
        let done = Mutex((counts: daemons.map { _ in 0 }, connected: 0, errors: [String]()))
        let threads = try daemons.indices.map { client in
            try Thread(named: "client") {
                do {
                    let connection = try daemons[client].connect()
                    // It waits for the backend, too.
                    let read = try connection.read("c", "n")
                    guard read.result != nil else { throw Failure("\(read)") }
                    done.withLock { $0.connected += 1 }
                    while done.withLock({ $0.connected < daemons.count && $0.errors.isEmpty }) { Glibc.usleep(1000) }
                    while done.withLock({ ($0.counts.max() ?? 0) < 2 * Self.rounds }) {
                        _ = try Increment.byFieldOperation.make(connection)
                        done.withLock { $0.counts[client] += 1 }
                    }
                } catch {
                    done.withLock { $0.errors.append("\(error)") }
                }
            }
        }
        for thread in threads { thread.join() }
        let (counts, _, errors) = done.withLock { $0 }
        #expect(errors == [])
        return counts
    }

    /// A daemon that is frozen, whatever it has locked, does not keep the others from changing a record; and it
    /// changes nothing that they have changed meanwhile.
    @Test func frozenDaemonIsNotWaitedFor() throws {
        let daemons = try Self.daemons(3, "frozen")
        #expect(try daemons[0].connect().create("c", "n", #"{"n":0}"#).result != nil)
        let done = Mutex((counts: [0, 0, 0], unknown: 0, isOver: false, errors: [String]()))
        let threads = try daemons.indices.map { client in
            try Thread(named: "client") {
                do {
                    let connection = try daemons[client].connect()
                    while !done.withLock(\.isOver) {
                        let reply = try connection.call(
                            "record.patch", Connection.params("c", "n", more: ["increment": #"{"n":1}"#]))
                        done.withLock { done in
                            let error = reply.error?.name
                            if error == nil { done.counts[client] += 1 }
                            if error == "outcome_unknown" { done.unknown += 1 }
                            if let error, client < 2 { done.errors.append("daemon \(client): \(error)") }
                        }
                    }
                } catch {
                    done.withLock { $0.errors.append("\(error)") }
                }
            }
        }
        func advance(_ clients: Range<Int>) throws {
            let goals = done.withLock(\.counts).map { $0 + 10 }
            let deadline = Deadline()
            while !done.withLock({ done in clients.allSatisfy { done.counts[$0] >= goals[$0] } }) {
                guard !deadline.hasPassed else { throw Failure("no progress: \(done.withLock { $0 })") }
                Glibc.usleep(1000)
            }
        }
        do {
            try advance(0..<3)
            for _ in 0..<5 {
                daemons[2].process.signal(SIGSTOP)
                defer { daemons[2].process.signal(SIGCONT) }
                try advance(0..<2)
            }
            try advance(0..<3)
        } catch {
            done.withLock { $0.errors.append("\(error)") }
        }
        done.withLock { $0.isOver = true }
        for thread in threads { thread.join() }
        let (counts, unknown, _, errors) = done.withLock { $0 }
        #expect(errors == [])
        let item = try daemons[0].connect().item("c", "n") ?? "none"
        let possible = (0...unknown).map { #"{"n":\#(counts.reduce($0, +))}"# }
        #expect(possible.contains(item), "\(item) \(possible)")
    }

    /// Each of several batches checks a record that the next one changes: one of them must fail.
    @Test(arguments: [2, 3], [false, true])
    func noTwoBatchesOvertakeEachOther(count: Int, areAbsent: Bool) throws {
        let daemons = try Self.daemons(count, "skew \(count) \(areAbsent)")
        let connections = try daemons.map { try $0.connect() }
        for round in 0..<Self.rounds {
            let ids = (0..<count).map { "\(round) \($0)" }
            var revisions = ids.map { _ in "null" }
            if !areAbsent {
                revisions = try ids.map { id in
                    let reply = try connections[0].create("c", id, "0")
                    return JSON.quote(try #require(reply.result?["revision"]?.string, "\(reply)"))
                }
            }
            for (index, connection) in connections.enumerated() {
                let next = (index + 1) % count
                let check =
                    #"{"op":"check","collection":"c","id":"\#(ids[next])","ifRevision":\#(revisions[next])}"#
                let write = #"{"op":"upsert","collection":"c","id":"\#(ids[index])","item":1}"#
                let operations = round % 2 == 0 ? [check, write] : [write, check]
                try connection.sendFrame(
                    Connection.request(
                        "record.batch", #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#,
                        id: "\(round)"))
            }
            let replies = try connections.map { try $0.receive() }
            let names = replies.compactMap(\.error?.name)
            #expect((1..<count).contains(names.count), "round \(round): \(replies)")
            #expect(Set(names).isSubset(of: ["revision_mismatch", "record_exists"]), "round \(round): \(replies)")
        }
    }

    /// A collection that other daemons write too is not moved by one of them, nor to where they do; one daemon that has
    /// the schema for itself moves it.
    @Test func collectionsDoNotLeaveASharedBackend() throws {
        let server = try PostgreSQLServer.shared()
        func configuration(_ first: String, _ second: String, isShared: Bool = true) -> Configuration {
            let options = #"{connection: "\#(server.connection)", schema: departed, shared: \#(isShared)}"#
            return Configuration(
                backends: """
                    main: {plugin: postgresql, options: \(options)}
                    own: {plugin: sqlite, options: {path: $DIRECTORY/own.sqlite}}
                    """, collections: "c: {backend: \(first)}\nd: {backend: \(second)}")
        }
        let (daemon, other) = (try Daemon(configuration("main", "own")), try Daemon(configuration("main", "main")))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil && connection.create("d", "a", "1").result != nil)
        for (first, second) in [("own", "own"), ("main, format: plist", "own"), ("main", "main")] {
            let reply = try Self.reload(daemon, configuration(first, second), #"{"move":true}"#)
            #expect(reply.error?.name == "invalid_configuration", "\(reply)")
            #expect(reply.error?.message.contains("others write to backend main") == true, "\(reply)")
        }
        #expect(try Self.reload(daemon, configuration("own", "own"), "{}").error?.name == "invalid_configuration")
        #expect(try other.connect().update("c", "a", "2").result != nil)
        #expect(try connection.item("c", "a") == "2")
        // Alone, but not yet: the other one is still there.
        let reply = try Self.reload(daemon, configuration("main", "own", isShared: false), "{}")
        #expect(reply.error?.name == "unavailable" && reply.error?.message.contains("which shares it") == true)
        #expect(try connection.item("c", "a") == "2")
        #expect(try other.stop() == .exited(0))
        #expect(try Self.reload(daemon, configuration("own", "main", isShared: false), #"{"move":true}"#).result != nil)
        try connection.awaitMoves()
        #expect(try connection.item("c", "a") == "2" && connection.item("d", "a") == "1")
        #expect(try server.query("SELECT count(*) FROM departed.d") == "1")
    }

    /// A daemon that has left a shared collection by force drops nothing of what the others serve.
    @Test func whatOthersServeIsNotDroppedAsOriginals() throws {
        let server = try PostgreSQLServer.shared()
        func configuration(_ backend: String, isShared: Bool = true) -> Configuration {
            let options = #"{connection: "\#(server.connection)", schema: forced, shared: \#(isShared)}"#
            return Configuration(
                backends: """
                    main: {plugin: postgresql, options: \(options)}
                    own: {plugin: sqlite, options: {path: $DIRECTORY/own.sqlite}}
                    """, collections: "c: {backend: \(backend)}")
        }
        let (daemon, other) = (try Daemon(configuration("main")), try Daemon(configuration("main")))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try Self.reload(daemon, configuration("own"), #"{"force":true}"#).result != nil)
        for params in [#"{"collection":"c","moved":true}"#, #"{"collection":"c"}"#] {
            let reply = try connection.call("collection.drop", params)
            #expect(reply.error?.name == "unsupported", "\(reply)")
            #expect(reply.error?.message.contains("others that write to backend main") == true, "\(reply)")
        }
        #expect(try other.connect().item("c", "a") == "1")
        #expect(try other.stop() == .exited(0))
        #expect(try Self.reload(daemon, configuration("own", isShared: false), "{}").result != nil)
        #expect(try connection.dropOriginals() == true)
        try connection.awaitRemovals()
        let tables = "pg_tables WHERE schemaname = 'forced' AND tablename = 'c'"
        #expect(try server.query("SELECT count(*) FROM \(tables)") == "0")
    }

    private static func reload(_ daemon: Daemon, _ next: Configuration, _ options: String) throws -> Reply {
        try daemon.installation.configure(next)
        return try daemon.connect().call("daemon.reload", options)
    }

    /// Of single writes and atomic batches that are executed at once at three daemons some order explains the replies
    /// and what they leave.
    @Test func outcomesAreThoseOfAnOrder() throws {
        let daemons = try Self.daemons(3, "order")
        let connections = try (0..<6).map { try daemons[$0 % 3].connect() }
        let seed = getenv("CRUDD_SHARED_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<5 * Self.rounds {
            var first = ConcurrentRecords(round: "\(round)", states: Array(repeating: nil, count: 4))
            for record in 0..<4 where Bool.random(using: &generator) {
                let isOver = Int.random(in: 0..<4, using: &generator) == 0
                let reply = try connections[0].call(
                    "record.create",
                    Connection.params(
                        first.collection(record), first.id(record), item: #"{"n":0}"#,
                        more: isOver ? ["ttl": "0.001"] : [:]))
                let revision = try #require(reply.result?["revision"]?.string, "\(reply)")
                if !isOver { first.states[record] = .init(revision: revision, number: 0) }
            }
            Glibc.usleep(2000)
            let writes = connections.indices.map { ConcurrentWrite(first, number: 1000 * ($0 + 1), by: &generator) }
            for (connection, write) in zip(connections, writes) { try connection.sendFrame(write.text(first)) }
            let replies = try connections.map { try $0.receive() }
            for daemon in connections.prefix(3) {
                var last = first
                for record in 0..<4 {
                    let reply = try daemon.read(first.collection(record), first.id(record))
                    last.states[record] = reply.result.flatMap { result in
                        guard let revision = result["revision"]?.string, let number = result["item"]?["n"]?.integer
                        else { return nil }
                        return .init(revision: revision, number: number)
                    }
                }
                let isExplained = first.order(Array(zip(writes, replies)), leaving: last)
                #expect(
                    isExplained,
                    "seed \(seed), round \(round): \(writes.map { $0.text(first) }) \(replies) \(first) \(last)")
                guard isExplained else { return }
            }
        }
    }
}
