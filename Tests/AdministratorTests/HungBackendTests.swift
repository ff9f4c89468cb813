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
                """, limits: "request_timeout: 60s")
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
        let deadline = Deadline(.seconds(60))
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
        let usual = try Self.administer(daemon, "n", from: "main", to: "other")

        let backends = try client.call("backend.list").result?["backends"]?.elements
        let pid = try #require(backends?.first { $0["name"]?.string == "kid" }?["pid"]?.integer)
        #expect(kill(pid_t(pid), SIGSTOP) == 0)
        try client.sendFrame(Connection.request("record.update", Connection.params("k", "1", item: "2"), id: "7"))
        try client.sendFrame(Connection.request("record.query", #"{"collection":"k"}"#, id: "8"))
        // The daemon has passed them on once it has replied to a third one.
        let other = try daemon.connect()
        #expect(try other.isUsable())
        let beside = try Self.administer(daemon, "m", from: "other", to: "main")
        // One wait for the backend takes seconds.
        #expect(beside < usual * 4 + .seconds(5), "\(beside) in place of \(usual)")
        #expect(try !client.hasSomethingToRead(), "the child has replied")

        #expect(kill(pid_t(pid), SIGCONT) == 0)
        #expect(try client.receive().error == nil)
        #expect(try client.receive().error == nil)
    }
}
