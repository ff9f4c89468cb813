import CRUDTestSupport
import Glibc
import Testing

/// Some connections that write records of one collection at random, and some that follow it.
final class FeedLoad {
    private struct Writer {
        var connection: Connection
        var inFlight = 0
    }

    /// What a follower knows, over all of its connections.
    private struct Follower {
        let params: String
        /// Which records it is to know.
        let isWanted: (String, JSON) -> Bool
        var connection: Connection?
        var cursor = "start"
        /// The revisions of records, by id.
        var known: [String: String] = [:]
        var expirations = 0
    }

    private var writersLive: [Writer] = []
    private var followers: [Follower]
    private var random: SeededGenerator
    private(set) var writes = 0
    private var isWriting = true

    /// How often a follower has had to begin again.
    var expiredCursors: Int { followers.map(\.expirations).reduce(0, +) }

    private static let filter = #""filter":{"op":"=","args":[{"property":"n"},1]}"#

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        followers = [
            Follower(params: #""wait":2"#, isWanted: { _, _ in true }),
            Follower(params: #""wait":2,"limit":3,"items":false"#, isWanted: { _, _ in true }),
            Follower(params: #""wait":1,\#(Self.filter)"#, isWanted: { $1["n"]?.integer == 1 }),
            Follower(params: #""wait":1,"prefix":"a","fields":["n"]"#, isWanted: { id, _ in id.hasPrefix("a") }),
        ]
    }

    // MARK: Connections

    func connect(to daemon: Daemon) throws {
        writersLive = try (0..<3).map { _ in Writer(connection: try daemon.connect()) }
        for index in followers.indices {
            followers[index].connection = try daemon.connect()
            try follow(index)
        }
    }

    /// What was written without a reply may or may not have been.
    func disconnect() {
        for writer in writersLive { writer.connection.close() }
        writersLive = []
        for index in followers.indices { followers[index].connection = nil }
    }

    /// Kills the daemon, and goes on with one that is started again.
    ///
    /// - Returns: an administrator's connection.
    func restart(_ daemon: inout Daemon) throws -> Connection {
        disconnect()
        try daemon.kill()
        daemon = try daemon.restarted()
        try connect(to: daemon)
        return try daemon.connect()
    }

    // MARK: Running

    func run(until isOver: () throws -> Bool) throws {
        let deadline = Deadline()
        while try !isOver() {
            for index in writersLive.indices where isWriting { try write(index) }
            let connections = writersLive.map(\.connection) + followers.compactMap(\.connection)
            let events = try Descriptor.wait(
                for: try connections.map { (try $0.pollDescriptor, POLLIN) }, until: Deadline(.milliseconds(50)))
            for index in writersLive.indices where events[index] != 0 { try receive(writer: index) }
            for index in followers.indices where events[writersLive.count + index] != 0 {
                try receive(follower: index)
            }
            try #require(!deadline.hasPassed, "this takes long")
        }
    }

    private func write(_ index: Int) throws {
        var bytes: [UInt8] = []
        while writersLive[index].inFlight < 4 {
            writes += 1
            writersLive[index].inFlight += 1
            let id = (random.next() % 2 == 0 ? "a" : "b") + "\(random.next() % 50)"
            let item = #"{"n":\#(random.next() % 3),"w":\#(writes)}"#
            let ttl = random.next() % 6 == 0 ? #","ttl":0.\#(1 + random.next() % 3)"# : ""
            let place = #""collection":"c","id":"\#(id)""#
            let request: (String, String) =
                switch random.next() % 10 {
                case 0, 1: ("record.delete", "{\(place)}")
                case 2: ("record.patch", #"{\#(place),"patch":{"n":\#(random.next() % 3)}\#(ttl)}"#)
                case 3: ("record.batch", batch(place, item, ttl))
                case 4: ("record.create", #"{\#(place),"item":\#(item)\#(ttl)}"#)
                case 5 where random.next() % 8 == 0:
                    ("record.deleteMatching", #"{"collection":"c","prefix":"a1",\#(Self.filter)}"#)
                default: ("record.upsert", #"{\#(place),"item":\#(item)\#(ttl)}"#)
                }
            bytes += Connection.frame(Connection.request(request.0, request.1, id: "\(writes)"))
        }
        if !bytes.isEmpty { try writersLive[index].connection.send(bytes) }
    }

    private func batch(_ place: String, _ item: String, _ ttl: String) -> String {
        let operations = [
            #"{"op":"upsert",\#(place),"item":\#(item)\#(ttl)}"#,
            #"{"op":"upsert","collection":"c","id":"a0","item":\#(item)}"#, #"{"op":"delete",\#(place)}"#,
        ]
        return #"{"atomic":\#(random.next() % 2 == 0),"operations":[\#(operations.joined(separator: ","))]}"#
    }

    private func receive(writer index: Int) throws {
        try writersLive[index].connection.takeIn()
        while try writersLive[index].connection.bufferedFrame() != nil { writersLive[index].inFlight -= 1 }
    }

    // MARK: Following

    private func follow(_ index: Int) throws {
        let params = Connection.changesParams("c", followers[index].cursor, followers[index].params)
        try followers[index].connection?.sendFrame(Connection.request("collection.changes", params, id: "1"))
    }

    private func receive(follower index: Int) throws {
        try followers[index].connection?.takeIn()
        while let frame = try followers[index].connection?.bufferedFrame() {
            let reply = try Reply(JSON(parsing: frame))
            switch reply.error?.name {
            case nil: try apply(Connection.ChangesPage(reply), to: &followers[index])
            case "cursor_expired":
                followers[index].cursor = "start"
                followers[index].known = [:]
                followers[index].expirations += 1
            case "unavailable": break
            default: Issue.record("\(reply)")
            }
            try follow(index)
        }
    }

    private func apply(_ page: Connection.ChangesPage, to follower: inout Follower) throws {
        let ids = page.changes.compactMap { $0["id"]?.string }
        #expect(Set(ids).count == page.changes.count, "an id occurs twice")
        for change in page.changes {
            let id = try #require(change["id"]?.string)
            if change["deleted"]?.boolean == true || change["matches"]?.boolean == false {
                follower.known[id] = nil
            } else {
                follower.known[id] = try #require(change["revision"]?.string)
            }
        }
        follower.cursor = page.cursor
    }

    // MARK: The end

    /// Writes nothing any more, and compares what every follower knows with what there is.
    func finish(_ connection: Connection) throws {
        isWriting = false
        try run { writersLive.allSatisfy { $0.inFlight == 0 } }
        var differences: [String] = []
        let deadline = Deadline()
        repeat {
            let end = Deadline(.milliseconds(200))
            try run { end.hasPassed }
            // A child that was killed may not be there again.
            guard let there = try records(connection) else {
                differences = ["unavailable"]
                continue
            }
            differences = followers.compactMap { difference(between: $0, and: there) }
        } while !differences.isEmpty && !deadline.hasPassed
        let described = differences.map { $0.prefix(1000) }
        #expect(described.isEmpty)
    }

    /// All records; nil: the backend is unavailable.
    private func records(_ connection: Connection) throws -> [JSON]? {
        var records: [JSON] = []
        var after = ""
        while true {
            let reply = try connection.call("record.query", #"{"collection":"c","limit":1000\#(after)}"#)
            guard let page = reply.result?["records"]?.elements else {
                try #require(reply.error?.name == "unavailable", "\(reply)")
                return nil
            }
            records += page
            guard let cursor = reply.result?["cursor"]?.string else { return records }
            after = #","cursor":"\#(cursor)""#
        }
    }

    private func difference(between follower: Follower, and there: [JSON]) -> String? {
        var expected: [String: String] = [:]
        for record in there {
            guard let id = record["id"]?.string, let item = record["item"], let revision = record["revision"] else {
                continue
            }
            if follower.isWanted(id, item) { expected[id] = revision.string }
        }
        guard expected != follower.known else { return nil }
        let missing = expected.filter { follower.known[$0.key] != $0.value }
        let surplus = follower.known.filter { expected[$0.key] == nil }
        return "\(follower.params) misses \(missing), knows \(surplus) at \(follower.cursor)"
    }
}
