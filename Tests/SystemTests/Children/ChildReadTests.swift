import CRUDTestSupport
import Glibc
import Testing

/// Reads in children, which event loops make themselves.
@Suite struct ChildReadTests {
    private static func configuration(
        timeout: String = "60s", options: String = "{}", limits: String? = nil
    ) -> Configuration {
        Configuration(
            backends: """
                inline: {plugin: sqlite, options: {path: $DIRECTORY/inline.sqlite}}
                sqlite: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}
                scripted: {plugin: scripted, isolation: process, limits: {call_timeout: \(timeout)}, \
                options: \(options)}
                """,
            collections: ["inline", "sqlite", "scripted"].map { "\($0): {backend: \($0)}" }.joined(separator: "\n"),
            limits: limits)
    }

    private static func daemon(_ configuration: Configuration = configuration()) throws -> Daemon {
        let installation = try Installation(configuration)
        try CompiledPlugin.compile(
            "scripted.c", definitions: ["CAPABILITIES=CRUDD_CAN_READ_CONCURRENTLY"],
            to: "\(installation.pluginDirectory)/scripted.so")
        return try Daemon(on: installation)
    }

    private static func hasReply(_ connection: Connection, within timeout: Duration) throws -> Bool {
        try Descriptor.wait(for: [(connection.pollDescriptor, POLLIN)], until: Deadline(timeout))[0] != 0
    }

    // MARK: Hanging

    @Test func aReadThatHangsHoldsUpNobodyElse() throws {
        let daemon = try Self.daemon(Self.configuration(timeout: "10s"))
        let hanging = try (0..<2).map { _ in try daemon.connect() }
        let neighbour = try daemon.connect()
        let other = try daemon.connect()
        for collection in ["inline", "sqlite", "scripted"] {
            #expect(try other.create(collection, "a", "1").result != nil)
        }
        let old = try ChildDaemon.awaitReady("scripted", notWith: nil, other)
        func readOthers() throws {
            for collection in ["inline", "sqlite"] { #expect(try other.item(collection, "a") == "1") }
        }
        let gates = try (0..<2).map { try ReadGate(at: "\(daemon.installation.path)/gate\($0)") }
        for (index, (connection, gate)) in zip(hanging, gates).enumerated() {
            try connection.sendFrame(Connection.request("record.read", Connection.params("scripted", gate.id), id: "1"))
            try gate.awaitRead()
            // A loop has two channels to a child.
            if index == 0 { #expect(try neighbour.item("scripted", "a") == "1") }
            // Had a loop waited for the read, it would have its reply before the first of these.
            for _ in 0..<2 { try readOthers() }
            #expect(try !connection.hasSomethingToRead())
        }
        // There is no channel left: this one waits for the first that becomes free.
        try neighbour.sendFrame(Connection.request("record.read", Connection.params("scripted", "a"), id: "0"))
        let deadline = Deadline()
        while try !hanging.allSatisfy({ try $0.hasSomethingToRead() }) {
            try #require(!deadline.hasPassed)
            try readOthers()
        }
        for connection in hanging { #expect(try connection.receive().error?.name == "unavailable") }
        // It had not been sent, and may meet the next child, which knows nothing of the last one's memory.
        #expect(["unavailable", "record_not_found"].contains(try neighbour.receive().error?.name))

        let new = try ChildDaemon.awaitReady("scripted", notWith: old.pid, other)
        #expect(new.restarts == 1)
        #expect(new.lastError?.contains("did not reply to read within 10.0 seconds") == true, "\(new.json)")
        #expect(old.pid.map(ChildDaemon.isAlive) == false)
        #expect(try neighbour.create("scripted", "a", "2").result != nil)
        for connection in hanging { #expect(try connection.item("scripted", "a") == "2") }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    // MARK: Losing

    @Test func aKilledChildLeavesNoReadWithoutAReply() throws {
        let daemon = try ChildDaemon(["sqlite"]).daemon
        let administrator = try daemon.connect()
        let connections = try (0..<16).map { _ in try daemon.connect() }
        for id in 0..<64 { #expect(try administrator.create("sqlite", "\(id)", "\(id)").result != nil) }
        let reads = (0..<64).flatMap {
            Connection.frame(Connection.request("record.read", Connection.params("sqlite", "\($0)"), id: "\($0)"))
        }
        var victim: pid_t?
        var (found, unavailable) = (0, 0)
        func take(_ reply: Reply) {
            if let item = reply.result?["item"] {
                found += 1
                #expect(item.text == reply.id.text)
            } else {
                unavailable += 1
                #expect(reply.error?.name == "unavailable")
            }
        }
        let rounds = 10
        for _ in 0..<rounds {
            let pid = try #require(try ChildDaemon.awaitReady("sqlite", notWith: victim, administrator).pid)
            // The child knows no collection before the first call that needs one.
            #expect(try administrator.item("sqlite", "0") == "0")
            for connection in connections { try connection.send(reads) }
            // Reads are in flight.
            take(try connections[0].receive())
            kill(pid, SIGKILL)
            victim = pid
            for (index, connection) in connections.enumerated() {
                for _ in 0..<(index == 0 ? 63 : 64) { take(try connection.receive()) }
            }
        }
        #expect(found + unavailable == rounds * 16 * 64)
        #expect(found >= rounds)
        #expect(unavailable > 0, "nothing was in flight when the child was killed")
        try ChildDaemon.awaitReady("sqlite", notWith: victim, administrator)
        for connection in connections { #expect(try connection.item("sqlite", "1") == "1") }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    // MARK: Failing

    @Test(arguments: [(7, "corrupt"), (10, "internal_error")])
    func aRecordThatCannotBeReadFailsAlone(status: Int, error: String) throws {
        let daemon = try Self.daemon()
        let connections = try (0..<4).map { _ in try daemon.connect() }
        for id in ["a", "b"] { #expect(try connections[0].create("scripted", id, "\"\(id)\"").result != nil) }
        let ids = ["a", "call:\(status)", "b", "a"]
        for _ in 0..<20 {
            for connection in connections {
                let requests = ids.map {
                    Connection.frame(
                        Connection.request("record.read", Connection.params("scripted", $0), id: "\"\($0)\""))
                }
                try connection.send(requests.joined())
            }
            for connection in connections {
                for _ in ids {
                    let reply = try connection.receive()
                    #expect(reply.error?.name == (reply.id.string?.first == "c" ? error : nil))
                    if let item = reply.result?["item"] { #expect(item.text == reply.id.text) }
                }
            }
        }
        #expect(try connections[0].readMany("scripted", ["a", "call:\(status)"]).error?.name == error)
        #expect(try ChildDaemon.status(of: "scripted", connections[0]).restarts == 0)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    // MARK: Long replies

    /// A child's reply continues in another frame after each mebibyte.
    @Test func longRepliesComeInSeveralFrames() throws {
        let daemon = try Self.daemon(Self.configuration(limits: "frame_bytes: 8MiB\nitem_bytes: 1MiB"))
        let connection = try daemon.connect()
        let items = (0..<12).map { "\"" + String(repeating: "\($0 % 10)", count: 900_000 + $0) + "\"" }
        for (id, item) in items.enumerated() {
            #expect(try connection.create("sqlite", "\(id)", item).result != nil)
        }
        #expect(try connection.create("sqlite", "small", "1").result != nil)
        let old = try ChildDaemon.status(of: "sqlite", connection)
        func readMany(_ ids: Range<Int>) -> (String, String) {
            let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
            return ("record.readMany", #"{"collection":"sqlite","ids":[\#(list)]}"#)
        }
        func check(_ reply: Reply) {
            #expect(reply.result?["records"]?.elements?.compactMap { $0["item"]?.text } == Array(items.prefix(6)))
        }
        for _ in 0..<3 {
            check(try connection.call(readMany(0..<6).0, readMany(0..<6).1))
            // Alone: the child is told that nobody wants the rest.
            #expect(try connection.call(readMany(0..<12).0, readMany(0..<12).1).error?.name == "limit_exceeded")
            for _ in 0..<10 { #expect(try connection.item("sqlite", "small") == "1") }
            // Beside others, whose records stand behind.
            let small = ("record.read", Connection.params("sqlite", "small"))
            let replies = try connection.pipeline([small, readMany(0..<12), small, readMany(0..<6), small])
            #expect(replies.map { $0.error?.name } == [nil, "limit_exceeded", nil, nil, nil])
            check(replies[3])
        }
        let new = try ChildDaemon.status(of: "sqlite", connection)
        #expect(new.pid == old.pid && new.restarts == 0)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    // MARK: Reloading

    @Test func aReloadWaitsForASlowRead() throws {
        let daemon = try Self.daemon()
        let connections = try (0..<4).map { _ in try daemon.connect() }
        let (slow, neighbour, other, administrator) = (
            connections[0], connections[1], connections[2], connections[3]
        )
        let gate = try ReadGate(at: "\(daemon.installation.path)/gate")
        for (collection, id) in [("scripted", gate.id), ("scripted", "a"), ("inline", "a"), ("sqlite", "a")] {
            #expect(try other.create(collection, id, "1").result != nil)
        }
        let old = try ChildDaemon.status(of: "scripted", other)
        try slow.sendFrame(Connection.request("record.read", Connection.params("scripted", gate.id), id: "1"))
        try gate.awaitRead()
        try daemon.installation.configure(Self.configuration(options: "{other: 1}"))
        try administrator.sendFrame(Connection.request("daemon.reload", #"{"force":true}"#, id: "1"))
        // The old child serves until the reload holds what is asked of its backend.
        let deadline = Deadline()
        let read = Connection.request("record.read", Connection.params("scripted", "a"), id: "1")
        try neighbour.sendFrame(read)
        while try Self.hasReply(neighbour, within: .seconds(2)) {
            #expect(try neighbour.receive().result?["item"]?.text == "1")
            try #require(!deadline.hasPassed, "the reload does not begin")
            try neighbour.sendFrame(read)
        }
        for _ in 0..<20 {
            for collection in ["inline", "sqlite"] { #expect(try other.item(collection, "a") == "1") }
        }
        for connection in [slow, administrator] { #expect(try !connection.hasSomethingToRead()) }
        gate.open()
        #expect(try slow.receive().result?["item"]?.text == "1")
        let changes = try administrator.receive().result?["changes"]?.elements?.compactMap(\.string)
        #expect(changes == ["backend scripted: options changed"])
        // It was held until the new child could be asked, whose memory is empty.
        #expect(try neighbour.receive().error?.name == "record_not_found")
        let new = try ChildDaemon.status(of: "scripted", other)
        #expect(new.state == "ready" && new.pid != old.pid && new.restarts == 0, "\(new.json)")
        #expect(try neighbour.create("scripted", "a", "2").result != nil)
        #expect(try slow.item("scripted", "a") == "2")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
