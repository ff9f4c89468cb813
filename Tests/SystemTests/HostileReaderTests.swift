import CRUDTestSupport
import Glibc
import Testing

/// A client that may only read, and asks for what takes longest: records of a megabyte and filters of hundreds of
/// patterns, which take this build a minute. Nobody else waits for that.
@Suite struct HostileReaderTests {
    private static let backends = [
        ("sqlite", "plugin: sqlite, options: {path: $DIRECTORY/$PLACE.sqlite}"), ("memory", "plugin: memory"),
        ("filesystem", "plugin: filesystem, options: {directory: $DIRECTORY/$PLACE}"),
        ("userdefaults", "plugin: userdefaults, options: {suite: $PLACE}"),
    ]
    private static let places = backends.flatMap { [$0.0 + "-inline", $0.0 + "-process"] }

    private static let configuration = Configuration(
        backends: places.map { place in
            let parts = place.split(separator: "-")
            let definition = backends.first { $0.0 == parts[0] }?.1 ?? ""
            return "\(place): {isolation: \(parts[1]), \(definition.replacing("$PLACE", with: place))}"
        }.joined(separator: "\n"),
        collections: places.map { place in
            let hasIndexes = place.hasPrefix("sqlite") || place.hasPrefix("memory")
            return "\(place): {backend: \(place)\(hasIndexes ? ", indexes: [n, t], changes: true" : "")}"
        }.joined(separator: "\n"))

    /// As many patterns as a request may have, and as long ones; none of them matches.
    private static let patterns: String = {
        let pattern = String(repeating: "a", count: 1000)
        let patterns = (0..<300).map { #"{"op":"like","args":[{"property":"t"},"%\#(pattern)b\#($0)%"]}"# }
        return #"{"op":"or","args":[\#(patterns.joined(separator: ","))]}"#
    }()

    private static func attacks(_ collection: String) -> [(method: String, params: String)] {
        let indexed = #"{"op":"and","args":[{"op":"=","args":[{"property":"n"},1]},\#(patterns)]}"#
        var attacks = [
            ("record.query", #"{"collection":"\#(collection)","filter":\#(indexed),"limit":10}"#),
            ("record.query", #"{"collection":"\#(collection)","filter":\#(patterns),"sort":[{"property":"t"}]}"#),
            ("record.count", #"{"collection":"\#(collection)","filter":\#(patterns)}"#),
        ]
        if collection.hasPrefix("sqlite") || collection.hasPrefix("memory") {
            attacks.append(("collection.changes", #"{"collection":"\#(collection)","filter":\#(patterns)}"#))
        }
        return attacks
    }

    /// The longest that a call of the witness takes, in a round of them.
    private static func longestCall(_ witness: Connection, _ collection: String, _ round: Int) throws -> Duration {
        var longest = Duration.zero
        func time(_ call: () throws -> Reply) throws {
            let start = ContinuousClock.now
            let reply = try call()
            #expect(reply.result != nil, "\(reply)")
            longest = max(longest, start.duration(to: .now))
        }
        for id in (0..<10).map({ "small \(round).\($0)" }) {
            try time { try witness.call("daemon.ping") }
            try time { try witness.create(collection, id, #"{"n":2}"#) }
            try time { try witness.read(collection, id) }
            try time { try witness.update(collection, id, #"{"n":3,"t":"b"}"#) }
            try time {
                let filter = #"{"op":"=","args":[{"property":"n"},3]}"#
                return try witness.call(
                    "record.query",
                    #"{"collection":"\#(collection)","filter":\#(filter),"prefix":"\#(id)","limit":2}"#)
            }
        }
        return longest
    }

    /// Waits until so many threads decide about long records.
    private static func await(_ count: Int, deciding daemon: Daemon, _ attackers: [Connection]) throws {
        let deadline = Deadline()
        while try deciding(in: daemon) < count {
            for attacker in attackers where try attacker.hasSomethingToRead() {
                throw Failure("\(try attacker.receive())")
            }
            try #require(!deadline.hasPassed)
        }
    }

    /// How many threads of the daemon and its children decide about long records.
    private static func deciding(in daemon: Daemon) throws -> Int {
        try ([String(daemon.process.pid)] + daemon.children).reduce(0) { count, process in
            let threads = (try? Files.names(in: "/proc/\(process)/task")) ?? []
            return count
                + threads.count { thread in
                    (try? Files.read("/proc/\(process)/task/\(thread)/comm")) == Array("record\n".utf8)
                }
        }
    }

    @Test(arguments: places)
    func nobodyWaitsForIt(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let witness = try daemon.connect()
        let text = String(repeating: "a", count: 1 << 20)
        for id in ["a", "b"] { #expect(try witness.create(collection, id, #"{"n":1,"t":"\#(text)"}"#).result != nil) }
        let attackers = try Self.attacks(collection).map { method, params in
            let attacker = try daemon.connect()
            try attacker.sendFrame(Connection.request(method, params, id: "1"))
            return attacker
        }
        try Self.await(attackers.count, deciding: daemon, attackers)
        // Before, it was as long as the attack. A busy machine delays any of them.
        let isServed = try (0..<3).contains { try Self.longestCall(witness, collection, $0) < .seconds(5) }
        #expect(isServed)
        #expect(try Self.deciding(in: daemon) == attackers.count)
        for attacker in attackers { #expect(try !attacker.hasSomethingToRead()) }
        // It stops when its client has gone, and some milliseconds have passed.
        for attacker in attackers { attacker.close() }
        let end = Deadline()
        while try Self.deciding(in: daemon) > 0 { try #require(!end.hasPassed, "it continues") }
        #expect(try witness.read(collection, "a").result != nil)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Searches do not hold up the end of the daemon.
    @Test(arguments: ["sqlite-inline", "filesystem-inline", "sqlite-process"])
    func theDaemonEnds(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let witness = try daemon.connect()
        let text = String(repeating: "a", count: 1 << 20)
        #expect(try witness.create(collection, "a", #"{"n":1,"t":"\#(text)"}"#).result != nil)
        let attacker = try daemon.connect()
        let (method, params) = Self.attacks(collection)[1]
        try attacker.sendFrame(Connection.request(method, params, id: "1"))
        try Self.await(1, deciding: daemon, [attacker])
        daemon.process.signal(SIGTERM)
        #expect(try attacker.receive().error?.name == "unavailable")
        #expect(try daemon.process.waitForExit(until: Deadline(.seconds(60))) == .exited(0), "\(daemon.log)")
    }

    /// Nor do those that have not begun: each of them took a second more.
    @Test func theDaemonEndsBeforeSearchesThatWait() throws {
        let collection = "sqlite-inline"
        let daemon = try Daemon(Self.configuration)
        let witness = try daemon.connect()
        let text = String(repeating: "a", count: 1 << 20)
        #expect(try witness.create(collection, "a", #"{"n":1,"t":"\#(text)"}"#).result != nil)
        let attacker = try daemon.connect()
        let pattern = String(repeating: "a", count: 1000)
        let patterns = (0..<60).map { #"{"op":"like","args":[{"property":"t"},"%\#(pattern)b\#($0)%"]}"# }
        let filter = #"{"op":"or","args":[\#(patterns.joined(separator: ","))]}"#
        let elements = (0..<100).map { number in
            Connection.request(
                "record.query", #"{"collection":"\#(collection)","filter":\#(filter)}"#, id: "\(number)")
        }
        try attacker.sendFrame("[\(elements.joined(separator: ","))]")
        try Self.await(1, deciding: daemon, [attacker])
        daemon.process.signal(SIGTERM)
        #expect(try daemon.process.waitForExit(until: Deadline(.seconds(60))) == .exited(0), "\(daemon.log)")
    }

    /// Several long records are not read on an event loop, where they would hold up everything else each time.
    @Test func manyLongRecordsAreReadByThreads() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        for collection in ["sqlite-inline", "memory-inline"] {
            let text = String(repeating: "a", count: 200_000)
            let ids = (0..<6).map { "\($0)" }
            for id in ids { #expect(try connection.create(collection, id, #""\#(id)\#(text)""#).result != nil) }
            for count in [2, 6] {
                let list = ids.prefix(count).map { "\"\($0)\"" }.joined(separator: ",")
                let params = #"{"collection":"\#(collection)","ids":["none",\#(list)]}"#
                for _ in 0..<2 {
                    let result = try connection.call("record.readMany", params).result
                    let items = result?["records"]?.elements?.compactMap { $0["item"]?.string }
                    #expect(items == ids.prefix(count).map { $0 + text })
                    #expect(result?["missing"]?.elements?.map(\.string) == ["none"])
                }
            }
        }
    }

    /// What is to be decoded before a query can begin has a bound.
    @Test func aFilterHasALimit() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        func query(_ bytes: Int) throws -> Reply {
            let value = String(repeating: "x", count: bytes)
            let filter = #"{"op":"in","args":[{"property":"t"},["\#(value)"]]}"#
            return try connection.call("record.query", #"{"collection":"sqlite-inline","filter":\#(filter)}"#)
        }
        #expect(try query(1_000_000).result != nil)
        let error = try query(1 << 20).error
        #expect(error?.name == "limit_exceeded" && error?.details?["limit"]?.string == "query_bytes")
        #expect(error?.details?["maximum"]?.integer == 1 << 20)
    }

    /// What all searches hold in a child has a bound: before, they took more than its limit, and it was killed again
    /// and again.
    @Test(arguments: ["sqlite-process", "filesystem-process"])
    func aChildOutlivesThem(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let witness = try daemon.connect()
        let text = String(repeating: "a", count: 4_000_000)
        for id in 0..<4 { #expect(try witness.create(collection, "\(id)", #"{"n":1,"t":"\#(text)"}"#).result != nil) }
        let children = try daemon.children
        let attackers = try (0..<8).map { _ in
            let attacker = try daemon.connect()
            for id in 0..<4 {
                try attacker.sendFrame(
                    Connection.request("record.query", #"{"collection":"\#(collection)","limit":2}"#, id: "\(id)"))
            }
            return attacker
        }
        // In the order in which the replies come: those that are not read take room.
        var missing = Array(repeating: 4, count: attackers.count)
        let deadline = Deadline(.seconds(120))
        while missing.contains(where: { $0 > 0 }) {
            try #require(!deadline.hasPassed)
            for (number, attacker) in attackers.enumerated() where try attacker.hasSomethingToRead() {
                let reply = String(
                    decoding: try attacker.receiveFrame(until: deadline)?.prefix(200) ?? [], as: UTF8.self)
                #expect(reply.contains(#""result":{"records":[{"id""#), "\(reply)")
                missing[number] -= 1
            }
        }
        #expect(try daemon.children == children)
        // Long items are given back to the system, and not kept in pieces by each thread, as before.
        for child in children {
            #expect(try Self.dataKiB(of: child) < 100_000)
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// How much memory of its own a process has, as its limit counts it.
    private static func dataKiB(of process: String) throws -> Int {
        let status = String(decoding: try Files.read("/proc/\(process)/status"), as: UTF8.self)
        return try #require(status.firstMatch(of: /VmData:\s*([0-9]+) kB/).flatMap { Int($0.1) })
    }

    /// Parts of long records are found by another thread than an event loop's.
    @Test func partsOfLongRecords() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let members = (0..<20_000).map { #""m\#($0)":\#($0)"# }.joined(separator: ",")
        #expect(try connection.create("c", "a", "{\(members)}").result != nil)
        for _ in 0..<3 {
            let read = try connection.read("c", "a", fields: #"["m19999","m1"]"#)
            #expect(read.result?["item"]?.text == #"{"m19999":19999,"m1":1}"#)
        }
        #expect(try connection.read("c", "a").result?["item"]?.text == "{\(members)}")
        #expect(try connection.read("c", "a", fields: "[]").result?["item"] == nil)
        #expect(try connection.read("c", "b", fields: #"["m1"]"#).error?.name == "record_not_found")
        #expect(try daemon.stop() == .exited(0))
    }
}
