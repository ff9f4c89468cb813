import CRUDTestSupport
import Glibc
import Testing

/// A backend that hangs delays what concerns it, and nothing else.
@Suite(.serialized) struct HungBackendTests {
    private static func configuration(_ indexes: String = "", _ place: String = "main") -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                kid: {plugin: sqlite, isolation: process, limits: {call_timeout: 120s}, \
                options: {path: $DIRECTORY/kid.sqlite}}
                """,
            collections: """
                a: {backend: main, indexes: [\(indexes)]}
                b: {backend: \(place)}
                k: {backend: kid}
                """)
    }

    /// How long it takes to drop a collection, to change an index, and to move a collection.
    private static func administer(_ daemon: Daemon, _ indexes: String, from place: String, to other: String) throws
        -> Duration
    {
        let connection = try daemon.connect()
        for name in ["a", "b"] { #expect(try connection.upsert(name, "1", #"{"n":1}"#).result != nil) }
        let start = ContinuousClock.now
        #expect(try connection.call("collection.drop", #"{"collection":"a"}"#).result?["dropped"]?.boolean == true)
        try daemon.installation.configure(configuration(indexes, place))
        #expect(try connection.call("daemon.reload").result != nil)
        try daemon.installation.configure(configuration(indexes, other))
        #expect(try connection.call("daemon.reload", #"{"move":true}"#).result?["moves"]?.elements?.count == 1)
        let deadline = Deadline()
        while try connection.call("daemon.status").result?["moves"]?.elements?.isEmpty != true {
            try #require(!deadline.hasPassed, "the move takes long")
        }
        let end = ContinuousClock.now
        #expect(try connection.call("collection.drop", #"{"collection":"b","moved":true}"#).result != nil)
        return start.duration(to: end)
    }

    @Test func aHungChildDelaysNoOther() throws {
        let daemon = try Daemon(Self.configuration())
        let client = try daemon.connect()
        #expect(try client.create("k", "1", "1").result != nil)
        // One wait for the backend takes seconds. In one of the rounds the machine is busy with nothing else.
        let isUndelayed = try (0..<3).contains { _ in
            let usual = try Self.administer(daemon, "n", from: "main", to: "other")
            return try Self.administerBesideHungChild(daemon, client) < usual * 4 + .seconds(5)
        }
        #expect(isUndelayed)
    }

    /// How long the same takes while the child is stopped and two requests to it are in flight.
    private static func administerBesideHungChild(_ daemon: Daemon, _ client: Connection) throws -> Duration {
        let pid = try childPID(client)
        #expect(kill(pid, SIGSTOP) == 0)
        defer { kill(pid, SIGCONT) }
        try client.sendFrame(Connection.request("record.update", Connection.params("k", "1", item: "2"), id: "7"))
        try client.sendFrame(Connection.request("record.query", #"{"collection":"k"}"#, id: "8"))
        // The daemon has passed them on once it has replied to a third one.
        let other = try daemon.connect()
        #expect(try other.isUsable())
        let beside = try administer(daemon, "m", from: "other", to: "main")
        #expect(try !client.hasSomethingToRead(), "the child has replied")

        #expect(kill(pid, SIGCONT) == 0)
        #expect(try client.receive().error == nil)
        #expect(try client.receive().error == nil)
        return beside
    }

    /// A hung child keeps the executor of changes from a drop until its client has got an error: then nothing is
    /// dropped later.
    @Test func aDropThatTimedOutIsNotExecuted() throws {
        var configuration = Self.configuration()
        // A reload waits for the child for ten seconds.
        configuration.limits = "request_timeout: 5s"
        let daemon = try Daemon(configuration)
        let client = try daemon.connect()
        for name in ["a", "b", "k"] { #expect(try client.create(name, "1", #"{"n":1}"#).result != nil) }
        let pid = try Self.childPID(client)
        #expect(kill(pid, SIGSTOP) == 0)
        defer { kill(pid, SIGCONT) }
        try client.sendFrame(Connection.request("record.update", Connection.params("k", "1", item: "2"), id: "7"))
        #expect(try daemon.connect().isUsable())

        var changed = Self.configuration()
        changed.limits = configuration.limits
        changed.collections.replace("k: {backend: kid}", with: "k: {backend: kid, indexes: [n]}")
        try daemon.installation.configure(changed)
        let administrator = try daemon.connect()
        try administrator.sendFrame(Connection.request("daemon.reload", "{}", id: "1"))
        // The daemon executes them in the order in which they come.
        try administrator.sendFrame(Connection.request("collection.drop", #"{"collection":"a"}"#, id: "2"))
        var replies = [try administrator.receive()]
        if replies[0].id.integer == 1 { replies.append(try administrator.receive()) }
        let drop = try #require(replies.first { $0.id.integer == 2 })
        #expect(drop.error?.name == "unavailable", "\(drop)")

        #expect(kill(pid, SIGCONT) == 0)
        if replies.count == 1 { _ = try administrator.receive() }
        // Whatever is still to be executed comes before this.
        let deadline = Deadline()
        let other = try daemon.connect()
        while try other.call("collection.drop", #"{"collection":"b"}"#).result?["dropped"]?.boolean != true {
            try #require(!deadline.hasPassed)
        }
        #expect(try other.item("a", "1") == #"{"n":1}"#)
        #expect(try daemon.stop() == .exited(0))
    }

    /// How many records a hung child has is not known: that refuses what concerns it, and nothing has changed by it.
    @Test func whatItHasIsUnknown() throws {
        let daemon = try Daemon(Self.configuration())
        let client = try daemon.connect()
        for name in ["b", "k"] { #expect(try client.create(name, "1", "1").result != nil) }
        #expect(try client.delete("b", "1").result != nil)
        let pid = try Self.childPID(client)
        #expect(kill(pid, SIGSTOP) == 0)
        defer { kill(pid, SIGCONT) }
        // The other is asked as well, and may move, as it is empty.
        var changed = Self.configuration("", "other")
        changed.collections.replace("k: {backend: kid}", with: "k: {backend: main}")
        try daemon.installation.configure(changed)
        let refusal = try client.call("daemon.reload")
        #expect(refusal.error?.name == "invalid_configuration", "\(refusal)")
        let message = refusal.error?.message ?? ""
        #expect(message.contains("collection k has an unknown number of records in backend kid"), "\(message)")
        #expect(!message.contains("collection b"), "\(message)")
        let drop = try client.call("collection.drop", #"{"collection":"k"}"#)
        #expect(drop.error?.name == "unavailable", "\(drop)")

        try daemon.installation.configure(Self.configuration("", "other"))
        #expect(try client.call("daemon.reload").result != nil)
        #expect(try client.call("collection.describe", #"{"collection":"b"}"#).result?["backend"]?.string == "other")
        #expect(kill(pid, SIGCONT) == 0)
        #expect(try client.item("k", "1") == "1")
        #expect(try daemon.stop() == .exited(0))
    }

    private static func childPID(_ connection: Connection) throws -> pid_t {
        let backends = try connection.call("backend.list").result?["backends"]?.elements
        return pid_t(try #require(backends?.first { $0["name"]?.string == "kid" }?["pid"]?.integer))
    }
}
