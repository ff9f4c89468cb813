import CRUDTestSupport
import Testing

/// Searches and deletions that nobody waits for any more, or that something cuts short.
@Suite struct InterruptedWorkTests {
    /// A collection of the unruly backend that has no end, so that whatever scans it does so until it is told
    /// to stop.
    private static let endless = #""prefix":"do:endless""#

    private static let scans = [
        ("record.count", #"{"filter":{"op":"=","args":[{"property":"n"},1]},\#(endless)}"#, "unavailable"),
        ("record.query", #"{"sort":[{"property":"n"}],\#(endless)}"#, "unavailable"),
        ("record.deleteMatching", "{\(endless)}", "outcome_unknown"),
    ]

    @Test(arguments: scans.prefix(2))
    func aSearchEndsWhenItsClientHasGone(method: String, members: String, error: String) throws {
        let daemon = try ChildDaemon(["unruly"], serverLimits: "request_timeout: 1h").daemon
        let witness = try daemon.connect()
        #expect(try witness.create("unruly", "a", "1").result != nil)
        let seeker = try daemon.connect()
        try seeker.sendFrame(Connection.request(method, Connection.selection("unruly", members), id: "1"))
        let deadline = Deadline()
        while try asked(witness) < 5 { try #require(!deadline.hasPassed) }
        seeker.close()
        try awaitRest(witness)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test(arguments: scans)
    func whatTakesTooLongEnds(method: String, members: String, error: String) throws {
        // On a busy machine other requests may take as long.
        for timeout in ["500ms", "2s", "8s"] {
            if (try? expectEnd(of: method, members, error, after: timeout)) != nil { return }
        }
        try expectEnd(of: method, members, error, after: "30s")
    }

    /// - Throws: a ``Failure`` where another request did not finish within the timeout either.
    private func expectEnd(of method: String, _ members: String, _ error: String, after timeout: String) throws {
        let daemon = try ChildDaemon(["unruly"], serverLimits: "request_timeout: \(timeout)").daemon
        let connection = try daemon.connect()
        let witness = try daemon.connect()
        let created = try witness.create("unruly", "a", "1")
        guard created.result != nil else { throw Failure("\(created)") }
        let reply = try connection.call(method, Connection.selection("unruly", members))
        guard reply.error?.name == error else { throw Failure("\(reply)") }
        try awaitRest(witness)
        guard try asked(witness) > 0 else { throw Failure("\(method) has not begun") }
        let item = try connection.item("unruly", "a")
        #expect(item == "1")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// How often the backend was asked for more of the collection without an end.
    private func asked(_ connection: Connection) throws -> Int {
        try #require(try connection.item("unruly", "do:endless").flatMap { Int($0) })
    }

    /// Waits until the backend is not asked for more. Work in progress does a slice between any two reads.
    private func awaitRest(_ connection: Connection) throws {
        let deadline = Deadline()
        var last = try asked(connection)
        var repetitions = 0
        while repetitions < 20 {
            try #require(!deadline.hasPassed, "it continues")
            let now = try asked(connection)
            repetitions = now == last ? repetitions + 1 : 0
            last = now
        }
    }

    // MARK: Deletions

    /// A deletion takes 256 records at a time; the child goes with the third of its three calls.
    @Test(arguments: [("die", 89), ("hang", 89), ("die afterwards", 0)])
    func aDeletionThatIsCutShortSaysSo(act: String, rest: Int) throws {
        let daemon = try ChildDaemon(["unruly"], limits: "call_timeout: 10s").daemon
        let connection = try daemon.connect()
        #expect(try connection.create("unruly", "a", "1").result != nil)
        // Only who goes around the daemon makes such a record and lives.
        let program = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1], timeout=10)
            ids = [f"b{number:03}".encode() for number in range(599)] + [f"do:{sys.argv[2]}.".encode()]
            (key,) = database.execute("SELECT key FROM collections WHERE name = 'unruly'").fetchone()
            rows = [(key, id, b"1", b"r") for id in ids]
            database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, 0, 0)", rows)
            database.commit()
            """
        let outcome = try Command.run(
            "/usr/bin/python3", ["-c", program, "\(daemon.installation.path)/unruly.db", act])
        try #require(outcome.status == .exited(0), "\(outcome.errors)")
        let old = try ChildDaemon.status(of: "unruly", connection).pid
        let reply = try connection.call("record.deleteMatching", Connection.selection("unruly", #"{"all":true}"#))
        #expect(reply.error?.name == "outcome_unknown", "\(reply)")
        try ChildDaemon.awaitReady("unruly", notWith: old, connection)
        let left = try connection.call("record.count", Connection.selection("unruly", "{}"))
        #expect(left.result?["count"]?.integer == rest)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test func aDeletionThatHasNotBegunIsUnavailable() throws {
        let daemon = try ChildDaemon(["unruly"]).daemon
        let connection = try daemon.connect()
        #expect(try connection.create("unruly", "a", "1").result != nil)
        let params = Connection.selection("unruly", #"{"prefix":"do:die"}"#)
        #expect(try connection.call("record.deleteMatching", params).error?.name == "unavailable")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    // MARK: Backends that query

    /// A backend that looks for too long is interrupted, and the search continues without it from where it was.
    @Test(arguments: ["inline", "sqlite"])
    func aSearchOutlivesTheInterruptionOfItsBackend(backend: String) throws {
        let daemon = try ChildDaemon([backend]).daemon
        let connection = try daemon.connect()
        #expect(try connection.create(backend, "a", "{}").result != nil)
        let count = 300_000
        let program = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1], timeout=10)
            database.execute(f'''
                INSERT INTO "{sys.argv[2]}" (id, item)
                WITH RECURSIVE numbers(n) AS (
                    SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {int(sys.argv[3]) - 1})
                SELECT printf('%06d', n), json_object('n', n) FROM numbers
            ''')
            database.commit()
            """
        let file = "\(daemon.installation.path)/\(backend == "inline" ? "inline" : "child").sqlite"
        let outcome = try Command.run("/usr/bin/python3", ["-c", program, file, backend, "\(count)"])
        try #require(outcome.status == .exited(0), "\(outcome.errors)")
        let wanted = [0, 1, count - 1]
        let filter = #"{"op":"in","args":[{"property":"n"},\#(wanted)]}"#

        var ids: [String] = []
        var cursor: String?
        repeat {
            let more = cursor.map { #","cursor":\#($0)"# } ?? ""
            let page = try connection.query(backend, #"{"filter":\#(filter)\#(more)}"#)
            let records = try #require(page.result?["records"]?.elements, "\(page)\n\(daemon.log)")
            ids += records.compactMap { $0["id"]?.string }
            cursor = page.result?["cursor"]?.text
        } while cursor != nil
        #expect(ids.compactMap { Int($0) } == wanted)
        let counted = try connection.call("record.count", Connection.selection(backend, #"{"filter":\#(filter)}"#))
        #expect(counted.result?["count"]?.integer == wanted.count)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
