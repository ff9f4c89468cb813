import CRUDTestSupport
import Glibc
import Testing

/// Children that misbehave: each is contained, seen by the administrator, and replaced.
@Suite struct ChildErrorTests {
    /// What the child does, and a word of what the administrator reads.
    static let acts = [
        ("die", "ended with status 3"), ("die afterwards", "ended with status 3"), ("hang", "within 10.0 seconds"),
        ("half", "within 10.0 seconds"), ("eat", "ended with status 1"), ("close", "closed its channel"),
        ("line", "a frame of"), ("binary", "a head of"), ("text", "not valid JSON"), ("twice", "which is not open"),
        ("other id", "a reply to request"), ("both", "result and error"), ("odd status", "status"),
        ("few", "violated the child protocol"), ("short", "bytes of a payload"), ("rest", "no length in the head"),
        ("long revision", "revision"),
    ]

    @Test(arguments: acts)
    func isContained(act: String, word: String) throws {
        let daemon = try ChildDaemon(["inline", "unruly"], limits: "memory: 128MiB, call_timeout: 10s").daemon
        let connection = try daemon.connect()
        let other = try daemon.connect()
        #expect(try connection.create("unruly", "a", "1").result != nil)
        for isWrite in [true, false] {
            let old = try ChildDaemon.awaitReady("unruly", notWith: nil, other)
            let id = "do:\(act)"
            try connection.sendFrame(
                isWrite
                    ? Connection.request("record.upsert", Connection.params("unruly", id, item: "2"), id: "1")
                    : Connection.request("record.read", Connection.params("unruly", id), id: "1"))
            #expect(try other.upsert("inline", "a", "1").result != nil)
            #expect(try connection.receive().error?.name == (isWrite ? "outcome_unknown" : "unavailable"))
            let new = try ChildDaemon.awaitReady("unruly", notWith: old.pid, other)
            #expect(new.restarts == old.restarts + 1)
            #expect(new.lastError?.contains(word) == true, "\(new.json)")
            #expect(old.pid.map(ChildDaemon.isAlive) == false)
            #expect(try connection.item("unruly", "a") == "1")
            #expect(try connection.upsert("unruly", "b", "2").result != nil)
        }
        // Only what was committed before the end is there.
        let description = try connection.call("collection.describe", #"{"collection":"unruly"}"#)
        #expect(description.result?["count"]?.integer == (act == "die afterwards" ? 3 : 2))
        #expect(daemon.log.contains(word), "\(daemon.log)")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test func aChildThatEndsAtOnceIsTriedLessAndLess() throws {
        let daemon = try ChildDaemon(["inline", "unruly"], unruly: ", do: 'open:die'").daemon
        let connection = try daemon.connect()
        let deadline = Deadline()
        var error: String?
        while try ChildDaemon.status(of: "unruly", connection).lastError == nil || error == nil {
            error = try connection.upsert("unruly", "a", "1").error?.name
            #expect(try connection.upsert("inline", "a", "1").result != nil)
            try #require(!deadline.hasPassed)
        }
        #expect(error == "unavailable")
        var status = try ChildDaemon.status(of: "unruly", connection)
        // It may be started again at this moment.
        while status.state != "down" || status.pid != nil {
            try #require(!deadline.hasPassed, "\(status.json)")
            status = try ChildDaemon.status(of: "unruly", connection)
        }
        #expect(status.lastError?.contains("ended with status 3") == true)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        #expect(daemon.log.split(separator: "\n").count { $0.contains("ended with status 3") } < 20)
    }

    @Test func whatItChattersIsThinnedOut() throws {
        let daemon = try ChildDaemon(["unruly"]).daemon
        let connection = try daemon.connect()
        #expect(try connection.create("unruly", "a", "1").result != nil)
        #expect(try connection.read("unruly", "do:chatter").error?.name == "record_not_found")
        try daemon.stop()
        let lines = daemon.log.split(separator: "\n").filter { $0.contains("backend unruly: ") }
        #expect(lines.contains { $0.hasPrefix("<4>") && $0.hasSuffix("backend unruly: line 0") }, "\(daemon.log)")
        #expect(lines.count < 500)
        #expect(lines.contains { $0.contains("more lines left out") })
        #expect(lines.allSatisfy { $0.utf8.count < 3000 && !$0.contains("\u{1B}") })
    }
}
