import CRUDTestSupport
import Glibc
import Testing

/// Whatever happens, whoever follows a collection ends with what is in it.
@Suite struct FeedModelTests {
    private static let places = [
        "{backend: main, changes: true}", "{backend: kid, format: plist, changes: true}",
        "{backend: main, changes: {retention: 400ms}, indexes: [n]}",
    ]

    private static func configuration(_ place: Int) -> Configuration {
        var configuration = MovePlaces.configuration(places[place])
        configuration.loops = 2
        return configuration
    }

    @Test(arguments: [1, 2] as [UInt64])
    func everyFollowerEndsWithTheCollection(seed: UInt64) throws {
        let writes = MovePlaces.number("CRUDD_FEED_WRITES", default: 1500)
        var random = SeededGenerator(seed: seed)
        var daemon = try Daemon(Self.configuration(0))
        var administrator = try daemon.connect()
        var place = 0
        let load = FeedLoad(seed: seed &* 77)
        try load.connect(to: daemon)
        while load.writes < writes {
            let end = load.writes + 50 + Int(random.next() % 200)
            try load.run { load.writes >= end }
            switch random.next() % 6 {
            case 0:
                load.disconnect()
                try daemon.kill()
                daemon = try daemon.restarted()
                administrator = try daemon.connect()
                try load.connect(to: daemon)
            case 1:
                if let child = try daemon.children.first.flatMap({ pid_t($0) }) { kill(child, SIGKILL) }
            case 2, 3:
                let next = Int(random.next() % UInt64(Self.places.count))
                try daemon.installation.configure(Self.configuration(next))
                guard try administrator.call("daemon.reload", #"{"move":true}"#).result != nil else {
                    // It does not go back to where originals are. A restart must not find that file.
                    try daemon.installation.configure(Self.configuration(place))
                    continue
                }
                place = next
                guard random.next() % 2 == 0 else { continue }
                try load.run { try administrator.moves().isEmpty }
                _ = try administrator.dropOriginals()
            case 4:
                load.disconnect()
                try load.connect(to: daemon)
            default: break
            }
        }
        try load.run { try administrator.moves().allSatisfy { $0["phase"]?.string == "failed" } }
        try load.finish(administrator)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log.suffix(2000))")
    }
}

/// Some connections that write records of one collection at random, and some that follow it.
private final class FeedLoad {
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

    // MARK: Running

    func run(until isOver: () throws -> Bool) throws {
        let deadline = Deadline(.seconds(60))
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
                case 3:
                    (
                        "record.batch",
                        #"{"operations":[{"op":"upsert",\#(place),"item":\#(item)\#(ttl)},"#
                            + #"{"op":"upsert","collection":"c","id":"a0","item":\#(item)},{"op":"delete",\#(place)}]}"#
                    )
                case 4: ("record.create", #"{\#(place),"item":\#(item)\#(ttl)}"#)
                default: ("record.upsert", #"{\#(place),"item":\#(item)\#(ttl)}"#)
                }
            bytes += Connection.frame(Connection.request(request.0, request.1, id: "\(writes)"))
        }
        if !bytes.isEmpty { try writersLive[index].connection.send(bytes) }
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
        var wrong: [Int] = []
        let deadline = Deadline(.seconds(20))
        repeat {
            let end = Deadline(.milliseconds(200))
            try run { end.hasPassed }
            let reply = try connection.call("record.query", #"{"collection":"c"}"#)
            // A child that was killed may not be there again.
            guard let there = reply.result?["records"]?.elements else {
                try #require(reply.error?.name == "unavailable", "\(reply)")
                wrong = Array(followers.indices)
                continue
            }
            wrong = followers.indices.filter { index in
                var expected: [String: String] = [:]
                for record in there {
                    guard let id = record["id"]?.string, let item = record["item"], let revision = record["revision"]
                    else { continue }
                    if followers[index].isWanted(id, item) { expected[id] = revision.string }
                }
                return expected != followers[index].known
            }
        } while !wrong.isEmpty && !deadline.hasPassed
        #expect(wrong.isEmpty, "followers \(wrong.map { followers[$0].params })")
    }
}
