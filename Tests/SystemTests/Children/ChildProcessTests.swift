import CRUDTestSupport
import Glibc
import Testing

/// Plugins that run in children: as good as inside the daemon, and gone when they are not wanted.
@Suite struct ChildProcessTests {
    @Test(arguments: ["sqlite", "memory", "store"])
    func servesAsInsideTheDaemon(backend: String) throws {
        let daemon = try ChildDaemon([backend]).daemon
        let connection = try daemon.connect()
        let status = try ChildDaemon.awaitReady(backend, notWith: nil, connection)
        #expect(status.json["isolation"]?.string == "process")
        #expect(status.restarts == 0)
        #expect(status.json[backend == "store" ? "command" : "plugin"]?.string != nil, "\(status.json)")
        #expect(try daemon.children == status.pid.map { ["\($0)"] })

        let item = #"{"n": 1.0, "big": 12345678901234567890, "a": [1,  2], "😀": "\u0000\n\\"}"#
        let created = try connection.create(backend, "a", item)
        #expect(try connection.create(backend, "a", "2").error?.name == "record_exists")
        #expect(try connection.item(backend, "a") == item)
        #expect(try connection.update(backend, "a", "3", ifRevision: "x").error?.name == "revision_mismatch")
        let revision = try #require(created.result?["revision"]?.string)
        #expect(try connection.update(backend, "a", "3", ifRevision: revision).result != nil)
        #expect(try connection.upsert(backend, "b", "4").result?["created"]?.boolean == true)
        #expect(try connection.delete(backend, "b").result != nil)
        #expect(try connection.delete(backend, "b").error?.name == "record_not_found")
        #expect(try connection.exists(backend, "a") == true)
        let found = try connection.readMany(backend, ["x", "a"])
        #expect(found.result?["records"]?.elements?.map { $0["item"]?.text } == ["3"])
        #expect(found.result?["missing"]?.elements?.map(\.string) == ["x"])
        let large = #""\#(String(repeating: "é", count: 900_000))""#
        #expect(try connection.upsert(backend, "large", large).result != nil)
        #expect(try connection.item(backend, "large") == large)
        let description = try connection.call("collection.describe", #"{"collection":"\#(backend)"}"#)
        #expect(description.result?["count"]?.integer == 2)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        #expect(status.pid.map(ChildDaemon.isAlive) == false)
    }

    @Test func orderAndBatchesHold() throws {
        let daemon = try ChildDaemon(["sqlite", "store"]).daemon
        for backend in ["sqlite", "store"] {
            let connection = try daemon.connect()
            let requests = (0..<500).flatMap { number in
                [
                    ("record.upsert", Connection.params(backend, "\(number % 7)", item: "\(number)")),
                    ("record.read", Connection.params(backend, "\(number % 7)")),
                ]
            }
            let replies = try connection.pipeline(requests)
            for number in 0..<500 { #expect(replies[2 * number + 1].result?["item"]?.integer == number) }
        }
    }

    @Test(arguments: ["sqlite", "store"])
    func manyLargeRecordsComeInOneReply(backend: String) throws {
        let daemon = try ChildDaemon([backend]).daemon
        let connection = try daemon.connect()
        let item = #""\#(String(repeating: "x", count: 300_000))""#
        let ids = (0..<20).map(String.init)
        for id in ids { #expect(try connection.create(backend, id, item).result != nil) }
        let records = try connection.readMany(backend, ids.reversed()).result?["records"]?.elements
        #expect(records?.map { $0["id"]?.string } == ids.reversed())
        #expect(records?.allSatisfy { $0["item"]?.text == item } == true)
    }

    @Test func aReplyMayComeInManySmallFrames() throws {
        let daemon = try ChildDaemon(["unruly"]).daemon
        let connection = try daemon.connect()
        #expect(try connection.create("unruly", "a", "1").result != nil)
        for _ in 0..<3 { #expect(try connection.item("unruly", "do:parts") == "7") }
        #expect(try ChildDaemon.status(of: "unruly", connection).restarts == 0)
    }

    @Test func whatItDoesNotNeedIsNotInherited() throws {
        let daemon = try ChildDaemon(["unruly"]).daemon
        let connection = try daemon.connect()
        #expect(try connection.create("unruly", "a", "1").result != nil)
        let item = try #require(try connection.read("unruly", "do:tell").result?["item"])
        // 3 is the database, 4 and 5 its log and index, as far as SQLite has them open.
        let descriptors = item["descriptors"]?.elements?.compactMap(\.integer) ?? []
        #expect(Array(descriptors.prefix(3)) == [0, 1, 2])
        let pid = try #require(try ChildDaemon.status(of: "unruly", connection).pid)
        for number in descriptors.dropFirst(3) {
            let target = try #require(realpath("/proc/\(pid)/fd/\(number)", nil))
            defer { free(target) }
            #expect(String(cString: target).hasPrefix("\(daemon.installation.path)/unruly.db"))
        }
        let environment = Set(item["environment"]?.elements?.compactMap(\.string) ?? [])
        let inherited: Set = [
            "CREDENTIALS_DIRECTORY", "HOME", "LANG", "LC_CTYPE", "PATH", "PGPASSFILE", "TMPDIR", "XDG_CONFIG_HOME",
        ]
        #expect(environment.isSubset(of: inherited), "\(environment)")
        #expect(item["directory"]?.string == "/")
        #expect(item["home"]?.string == daemon.installation.path)
        let limits = String(decoding: try Files.read("/proc/\(pid)/limits"), as: UTF8.self)
        let data = limits.split(separator: "\n").first { $0.hasPrefix("Max data size") }
        #expect(data?.contains(" \(256 << 20) ") == true, "\(limits)")
    }

    /// Neither those that rest, nor those in a call that never returns, which would not notice the end of their
    /// channel.
    @Test func noPluginOutlivesAKilledDaemon() throws {
        let daemon = try ChildDaemon(["sqlite", "memory", "gated", "busy"]).daemon
        let connection = try daemon.connect()
        for (backend, sign) in [("gated", "scripted waits"), ("busy", "scripted is busy")] {
            let params = Connection.params(backend, "a", item: "1")
            try connection.sendFrame(Connection.request("record.upsert", params, id: "1"))
            try awaitLine(sign, of: daemon)
        }
        try expectNoChildOutlives(daemon, count: 4)
    }

    @Test(arguments: [("hang", "hangs"), ("spin", "spins")])
    func noExecutableOutlivesAKilledDaemon(act: String, sign: String) throws {
        let daemon = try ChildDaemon(["store", "unruly"]).daemon
        let params = Connection.params("unruly", "do:\(act)", item: "1")
        try daemon.connect().sendFrame(Connection.request("record.upsert", params, id: "1"))
        try awaitLine(sign, of: daemon)
        try expectNoChildOutlives(daemon, count: 2)
    }

    /// How long its threads may spin is said to a child in its first frame.
    @Test func busyPollHoldsForChildren() throws {
        let program = """
            #!/usr/bin/python3
            import struct, sys
            size, head = struct.unpack(">II", sys.stdin.buffer.read(8))
            sys.exit(sys.stdin.buffer.read(head))
            """
        let configuration = Configuration(backends: "main: {command: [$DIRECTORY/greeted.py], options: {}}")
        let installation = try Installation(text: configuration.text + "busy_poll: 7us\n")
        try Files.write(program, to: "\(installation.path)/greeted.py")
        try Files.setMode(0o755, of: "\(installation.path)/greeted.py")
        try awaitLine(#""busyPoll":7}"#, of: Daemon(on: installation))
    }

    private func awaitLine(_ line: String, of daemon: Daemon) throws {
        let deadline = Deadline()
        while !daemon.log.contains(line) { try #require(!deadline.hasPassed) }
    }

    private func expectNoChildOutlives(_ daemon: Daemon, count: Int) throws {
        let pids = try daemon.children.compactMap(pid_t.init)
        #expect(pids.count == count)
        #expect(pids.allSatisfy(ChildDaemon.isAlive))
        try daemon.kill()
        let deadline = Deadline()
        while pids.contains(where: ChildDaemon.isAlive) { try #require(!deadline.hasPassed) }
    }

    /// A write that waits for longer than `call_timeout` while another process writes is none that hangs.
    @Test func aChildThatWaitsForALockIsNotEnded() throws {
        let daemon = try Daemon(
            Configuration(
                backends: """
                    main: {plugin: sqlite, isolation: process, limits: {call_timeout: 3s}, \
                    options: {path: $DIRECTORY/main.sqlite}}
                    """, collections: "c: {backend: main}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        let lock = try SQLiteLock(of: "\(daemon.installation.path)/main.sqlite", seconds: 4)
        #expect(try connection.create("c", "b", "1").result != nil)
        try lock.end()
        #expect(try ChildDaemon.status(of: "main", connection).restarts == 0, "\(daemon.log)")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func aStopWaitsForNoChildThatHangs() throws {
        let daemon = try ChildDaemon(["sqlite", "unruly"], limits: "call_timeout: 3s").daemon
        let connection = try daemon.connect()
        let pid = try #require(try ChildDaemon.awaitReady("unruly", notWith: nil, connection).pid)
        try connection.sendFrame(
            Connection.request("record.upsert", Connection.params("unruly", "do:hang", item: "1"), id: "1"))
        #expect(try connection.receive().error?.name == "outcome_unknown")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        #expect(!ChildDaemon.isAlive(pid))
    }
}
