import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization
import Testing

/// Changes of a collection that several daemons write. Each test has a server and some daemons: one after the other.
@Suite(.serialized) struct SharedFeedTests {
    /// Of its own: a transaction of another test would delay what is shown.
    private let server: PostgreSQLServer
    /// How many writes there are in all; by the environment more.
    private static let writes = MovePlaces.number("CRUDD_FEED_WRITES", default: 600)

    init() throws {
        server = try PostgreSQLServer()
    }

    private func daemon(isolation: String = "inline", shared: Bool = true, changes: String = "true") throws -> Daemon {
        let options = #"{connection: "\#(server.connection)", shared: \#(shared)}"#
        return try Daemon(
            Configuration(
                backends: "main: {plugin: postgresql, isolation: \(isolation), options: \(options)}",
                collections: "c: {backend: main, changes: \(changes)}\n\"*\": {backend: main, changes: true}"))
    }

    /// Waits until every transaction has ended that has a number now, be it one that renews a row of a daemon.
    private func awaitTransactions() throws {
        let deadline = Deadline()
        let next = try #require(try number("pg_snapshot_xmax"))
        while try #require(try number("pg_snapshot_xmin")) < next { try #require(!deadline.hasPassed) }
    }

    private func number(_ function: String) throws -> Int? {
        try server.query("SELECT \(function)(pg_current_snapshot())").flatMap { Int($0) }
    }

    /// The reply to a request for changes; it is asked for again while the schema or the feed is not open yet.
    private static func changes(_ connection: Connection, after cursor: String, _ more: String = "") throws -> Reply {
        let deadline = Deadline()
        while true {
            let reply = try connection.call("collection.changes", Connection.changesParams("c", cursor, more))
            guard reply.error?.name == "unavailable", !deadline.hasPassed else { return reply }
            poll(nil, 0, 20)
        }
    }

    private static func page(
        _ connection: Connection, after cursor: String, _ more: String = ""
    ) throws -> Connection.ChangesPage {
        try Connection.ChangesPage(changes(connection, after: cursor, more))
    }

    /// What is read with the cursors of a feed, whichever daemon is asked.
    private struct Reader {
        var connection: Connection
        var cursor = "start"
        /// The ids of what has changed, with `-` before those of removals.
        var told: [String] = []

        mutating func read(until isComplete: ([String]) -> Bool) throws {
            let deadline = Deadline()
            while !isComplete(told) {
                try #require(!deadline.hasPassed, "\(told)")
                let page = try SharedFeedTests.page(connection, after: cursor, #""wait":1"#)
                for change in page.changes {
                    let id = try #require(change["id"]?.string)
                    told.append(change["deleted"]?.boolean == true ? "-\(id)" : id)
                }
                cursor = page.cursor
            }
        }
    }

    // MARK: All changes, in one order

    private static func write(_ writer: Int, _ count: Int, _ connection: Connection) throws {
        var generator = SeededGenerator(seed: UInt64(writer))
        for round in 1...count {
            let ids = (0..<3).map { _ in "\(Int.random(in: 0..<30, using: &generator))" }
            let kind = Int.random(in: 0..<10, using: &generator)
            let reply = try write(kind, ids, Item(number: 100 * round + writer).json, connection)
            let isExpected = [nil, "record_exists", "record_not_found", "unavailable"].contains(reply.error?.name)
            if !isExpected { throw Failure("\(reply)") }
        }
    }

    private static func write(_ kind: Int, _ ids: [String], _ item: String, _ connection: Connection) throws -> Reply {
        switch kind {
        case 0, 1: return try connection.delete("c", ids[0])
        case 2: return try connection.create("c", ids[0], item)
        case 3: return try connection.update("c", ids[0], item)
        case 4:
            let operations = ids.map { Connection.params("c", $0, item: item, more: ["op": #""upsert""#]) }
            return try connection.call(
                "record.batch", #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#)
        default: return try connection.upsert("c", ids[0], item)
        }
    }

    /// Followers at three daemons, whose pages have different lengths, while clients of all of them write.
    @Test(arguments: ["inline", "process"])
    func everyFollowerIsToldTheSame(isolation: String) throws {
        let daemons = try (0..<3).map { _ in try daemon(isolation: isolation) }
        let followers = try zip(daemons, [100, 7, 1]).map { daemon, limit in
            try ChangeFollower(of: RestartedDaemon(daemon), limit: limit)
        }
        let errors = Mutex<[String]>([])
        let threads = try daemons.enumerated().map { index, daemon in
            try Thread(named: "writer") {
                do {
                    try Self.write(index + 1, Self.writes / daemons.count, daemon.connect())
                } catch {
                    errors.withLock { $0.append("\(error)") }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(errors.withLock(\.self) == [])
        for follower in followers {
            #expect(try follower.differences() == [])
            #expect(follower.beginnings == 0)
            let writes = follower.events.filter { $0.revision != nil }
            let isOnce = Set(writes).count == writes.count
            #expect(isOnce, "what was told once is told again")
            // Each client has had the reply to a write before the next one.
            for writer in 1...daemons.count {
                let numbers = writes.compactMap(\.item?.number).filter { $0 % 100 == writer }
                let isInOrder = numbers == numbers.sorted()
                #expect(isInOrder, "writer \(writer): \(numbers)")
            }
        }
        try expectOneOrder(followers.map(\.events), daemons)
    }

    private func expectOneOrder(_ told: [[ChangeFollower.Event]], _ daemons: [Daemon]) throws {
        let places = Dictionary(zip(told[0], told[0].indices), uniquingKeysWith: { first, _ in first })
        for events in told.dropFirst() {
            let common = events.filter { $0.revision != nil }.compactMap { places[$0] }
            let isInOrder = common == common.sorted()
            #expect(isInOrder, "\(common)")
        }
        // From the start, what each of them was told last of what is there.
        try awaitTransactions()
        for (events, daemon) in zip(told, daemons) {
            var last: [ChangeFollower.Event] = []
            var ids: Set<String> = []
            for event in events.reversed() where ids.insert(event.id).inserted { last.append(event) }
            let expected = last.reversed().compactMap(\.revision)
            let connection = try daemon.connect()
            var (revisions, cursor, isComplete): ([String], String, Bool) = ([], "start", false)
            while !isComplete {
                let page = try Self.page(connection, after: cursor, #""limit":4,"items":false"#)
                revisions += page.changes.compactMap { $0["revision"]?.string }
                (cursor, isComplete) = (page.cursor, !page.more)
            }
            #expect(revisions == expected)
        }
    }

    /// Requests that wait at other daemons have their replies when one has written, long before their time is over.
    @Test(arguments: ["inline", "process"])
    func areWokenByAWriteElsewhere(isolation: String) throws {
        let connections = try (0..<3).map { _ in try daemon(isolation: isolation).connect() }
        #expect(try connections[0].create("c", "first", "1").result != nil)
        var cursors = try connections.map { connection in
            var reader = Reader(connection: connection)
            try reader.read { $0 == ["first"] }
            return reader.cursor
        }
        for round in 0..<20 {
            let writer = round % connections.count
            for (connection, cursor) in zip(connections, cursors) {
                let params = Connection.changesParams("c", cursor, #""wait":300"#)
                try connection.sendFrame(Connection.request("collection.changes", params, id: #""waits""#))
                // Its reply comes while the earlier request waits.
                if round % 2 == 0 { #expect(try connection.isUsable()) }
            }
            let params = Connection.params("c", "\(round)", item: "\(round)")
            try connections[writer].sendFrame(Connection.request("record.upsert", params, id: #""write""#))
            for (index, connection) in connections.enumerated() {
                let replies = try (0..<(index == writer ? 2 : 1)).map { _ in try connection.receive() }
                #expect(replies.allSatisfy { $0.error == nil }, "\(replies)")
                let page = try Connection.ChangesPage(#require(replies.first { $0.id.string == "waits" }))
                #expect(page.ids == ["\(round)"])
                cursors[index] = page.cursor
            }
        }
    }

    /// Each collection has a feed of its own, also where one batch has changed all of them.
    @Test func followersOfManyCollectionsAreWoken() throws {
        let (writer, other) = (try daemon().connect(), try daemon())
        let names = ["c", "d", "e", "f", "g"]
        func write(_ id: String) throws {
            let operations = names.map { Connection.params($0, id, item: "1", more: ["op": #""create""#]) }
            let reply = try writer.call(
                "record.batch", #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#)
            #expect(reply.result != nil, "\(reply)")
        }
        try write("first")
        let waiting = try names.map { name in
            let connection = try other.connect()
            let deadline = Deadline()
            while true {
                let reply = try connection.call("collection.changes", Connection.changesParams(name, "start"))
                try #require(!deadline.hasPassed, "\(reply)")
                guard let page = try? Connection.ChangesPage(reply), page.ids == ["first"], !page.more else { continue }
                let params = Connection.changesParams(name, page.cursor, #""wait":300"#)
                try connection.sendFrame(Connection.request("collection.changes", params, id: "1"))
                return connection
            }
        }
        try write("second")
        for connection in waiting { #expect(try Connection.ChangesPage(connection.receive()).ids == ["second"]) }
    }

    // MARK: Cursors

    @Test func cursorsAreThoseOfAllDaemons() throws {
        let connections = try (0..<3).map { _ in try daemon().connect() }
        let ids = (0..<9).map { "\($0)" }
        for (number, id) in ids.enumerated() {
            #expect(try connections[number % 3].create("c", id, id).result != nil)
        }
        try awaitTransactions()
        // Each page from another daemon.
        var (told, cursor): ([String], String) = ([], "start")
        for number in ids.indices {
            let page = try Self.page(connections[(number + 1) % 3], after: cursor, #""limit":1"#)
            told += page.ids
            cursor = page.cursor
        }
        #expect(told == ids)
        for index in 0..<3 {
            let (writer, reader) = (connections[index], connections[(index + 1) % 3])
            let other = connections[(index + 2) % 3]
            #expect(try writer.upsert("c", "before \(index)", "1").result != nil)
            try awaitTransactions()
            let now = try Self.page(reader, after: "now")
            #expect(now.changes.isEmpty)
            #expect(try writer.upsert("c", "behind \(index)", "1").result != nil)
            #expect(try other.delete("c", "before \(index)").result != nil)
            try awaitTransactions()
            for connection in [other, reader, writer] {
                let page = try Self.page(connection, after: now.cursor)
                #expect(page.ids == ["behind \(index)"])
                #expect(page.changes.last?.text == #"{"id":"before \#(index)","deleted":true}"#)
                #expect(try Self.page(connection, after: page.cursor).changes.isEmpty)
            }
        }
    }

    /// A daemon that has the schema for itself has a feed of its own, and those that share it later continue theirs.
    /// What was numbered before has lower numbers than what is changed then.
    @Test func sharingBeginsAndEndsFeeds() throws {
        let shared = try (0..<2).map { _ in try daemon() }
        var connections = try shared.map { try $0.connect() }
        for (number, id) in ["a", "b", "c"].enumerated() {
            #expect(try connections[number % 2].create("c", id, "1").result != nil)
        }
        #expect(try connections[0].delete("c", "a").result != nil)
        var reader = Reader(connection: connections[1])
        try reader.read { Set($0).isSuperset(of: ["b", "c"]) }
        var cursors = [reader.cursor]
        for daemon in shared { #expect(try daemon.stop() == .exited(0), "\(daemon.log)") }

        let owner = try daemon(shared: false)
        connections = [try owner.connect()]
        reader = Reader(connection: connections[0])
        try reader.read { $0.count >= 2 }
        #expect(reader.told == ["b", "c"])
        #expect(try Self.changes(connections[0], after: cursors[0]).error?.name == "cursor_expired")
        #expect(try connections[0].create("c", "d", "1").result != nil)
        #expect(try connections[0].update("c", "b", "2").result != nil)
        try reader.read { $0.count >= 4 }
        #expect(reader.told == ["b", "c", "d", "b"])
        #expect(try Self.page(connections[0], after: "start").ids == ["c", "d", "b"])
        cursors.append(reader.cursor)
        #expect(try owner.stop() == .exited(0), "\(owner.log)")

        connections = try (0..<2).map { _ in try daemon().connect() }
        reader = Reader(connection: connections[0])
        try reader.read { $0.count >= 3 }
        #expect(reader.told == ["c", "d", "b"])
        for connection in connections {
            #expect(try Self.page(connection, after: cursors[0]).ids == ["d", "b"], "the feed of those that share it")
            #expect(try Self.changes(connection, after: cursors[1]).error?.name == "cursor_expired")
        }
        #expect(try connections[1].create("c", "e", "1").result != nil)
        #expect(try connections[0].update("c", "c", "2").result != nil)
        try reader.read { $0.count >= 5 }
        #expect(reader.told == ["c", "d", "b", "e", "c"])
        try awaitTransactions()
        for connection in connections {
            #expect(try Self.page(connection, after: "start").ids == ["d", "b", "e", "c"])
        }
    }

    /// Tables that were brought from another cluster have numbers that no transaction of this one has yet: their
    /// records are in the feed all the same, once, and before what is changed later, also by a daemon that has the
    /// schema for itself by then.
    @Test(arguments: [true, false])
    func recordsOfAnotherClusterComeFirst(isShared: Bool) throws {
        let former = try daemon()
        let connection = try former.connect()
        for id in ["a", "b", "c"] { #expect(try connection.create("c", id, "1").result != nil) }
        #expect(try connection.delete("c", "a").result != nil)
        var reader = Reader(connection: connection)
        try reader.read { Set($0).isSuperset(of: ["b", "c"]) }
        #expect(try former.stop() == .exited(0), "\(former.log)")
        for table in ["c", "crudd_removed_1"] {
            #expect(try server.query("UPDATE crudd.\(table) SET sequence = sequence + (1::bigint << 60)") != nil)
        }
        let next = isShared ? try former.restarted() : try daemon(shared: false)
        reader = Reader(connection: try next.connect())
        try reader.read { $0.count >= 2 }
        #expect(reader.told.sorted() == ["b", "c"])
        #expect(try reader.connection.create("c", "d", "1").result != nil)
        #expect(try reader.connection.delete("c", "b").result != nil)
        try reader.read { $0.count >= 4 }
        #expect(Array(reader.told.suffix(2)) == ["d", "-b"])
    }

    // MARK: Other writers

    /// Daemons without the feed, of which one has opened the collection before it was turned on, and one while no
    /// daemon with the feed is there: what they do is told all the same, and no cursor expires.
    @Test func changesOfDaemonsWithoutTheFeedAreTold() throws {
        let first = try daemon(changes: "false").connect()
        for id in ["a", "b", "c"] { #expect(try first.create("c", id, "1").result != nil) }
        let feeding = try daemon()
        var reader = Reader(connection: try feeding.connect())
        try reader.read { $0.count >= 3 }
        #expect(reader.told.sorted() == ["a", "b", "c"])
        let cursor = reader.cursor
        #expect(try first.delete("c", "a").result != nil)
        #expect(try first.upsert("c", "b", "2").result != nil)
        try reader.read { $0.count >= 5 }
        #expect(Array(reader.told.suffix(2)) == ["-a", "b"])

        #expect(try feeding.stop() == .exited(0), "\(feeding.log)")
        let second = try daemon(changes: "false").connect()
        #expect(try second.upsert("c", "d", "1").result != nil)
        #expect(try second.delete("c", "c").result != nil)
        #expect(try first.delete("c", "b").result != nil)
        let deletion = try second.call("record.deleteMatching", #"{"collection":"c","prefix":"d"}"#)
        #expect(deletion.result?["deleted"]?.integer == 1, "\(deletion)")
        #expect(try first.create("c", "a", "3").result != nil)
        let again = try feeding.restarted()
        reader.connection = try again.connect()
        try reader.read { $0.last == "a" }
        #expect(Array(reader.told.suffix(4)) == ["-c", "-b", "-d", "a"])
        // With an earlier cursor, each at its last change.
        try awaitTransactions()
        reader = Reader(connection: reader.connection, cursor: cursor)
        try reader.read { $0.last == "a" }
        #expect(reader.told == ["-c", "-b", "-d", "a"])
        for connection in [first, second] {
            #expect(try connection.changesError("c", after: cursor) == "unsupported")
        }
    }

    /// A transaction of another program that has written something else, and is not committed.
    private struct OpenTransaction {
        private let server: PostgreSQLServer
        private let process: ChildProcess
        private let number: Int

        static let tables = "CREATE TABLE elsewhere (n int); CREATE TABLE ended (n int)"

        /// - Parameter last: SQL that it executes when it is to end.
        init(_ server: PostgreSQLServer, _ number: Int, last: String = "SELECT 1") throws {
            self.server = server
            self.number = number
            let sql = """
                BEGIN; INSERT INTO elsewhere VALUES (\(number)); DO $$ BEGIN
                    FOR i IN 1..60000 LOOP
                        EXIT WHEN EXISTS (SELECT FROM ended WHERE n = \(number));
                        PERFORM pg_sleep(0.01);
                    END LOOP;
                END $$; \(last); COMMIT
                """
            process = try ChildProcess(
                "psql", ["-X", "-q", "-d", "\(server.connection) application_name=open\(number)", "-c", sql],
                descriptors: [])
            let open = "application_name = 'open\(number)' AND backend_xid IS NOT NULL"
            let deadline = Deadline()
            while try server.query("SELECT count(*) FROM pg_stat_activity WHERE \(open)") != "1" {
                try #require(!deadline.hasPassed, "there is no transaction")
                poll(nil, 0, 5)
            }
        }

        func end(isCommitted: Bool) throws {
            let sessions = "FROM pg_stat_activity WHERE application_name = 'open\(number)'"
            let sql =
                isCommitted
                ? "INSERT INTO ended VALUES (\(number))" : "SELECT pg_terminate_backend(pid) \(sessions)"
            #expect(try server.query(sql) != nil)
            let status = try process.waitForExit()
            #expect((status == .exited(0)) == isCommitted, "\(status)")
        }
    }

    /// What is acknowledged meanwhile is told once the transactions with lower numbers have ended, those that wait for
    /// it included; and nothing twice.
    @Test(arguments: [true, false])
    func anOpenTransactionLosesNothing(isCommitted: Bool) throws {
        #expect(try server.query(OpenTransaction.tables) != nil)
        let daemons = try (0..<3).map { _ in try daemon() }
        let connections = try daemons.map { try $0.connect() }
        #expect(try connections[0].create("c", "x", "1").result != nil)
        var readers = try connections.map { connection in
            var reader = Reader(connection: connection)
            try reader.read { $0 == ["x"] }
            return reader
        }
        let first = try OpenTransaction(server, 1)
        for number in 0..<4 { #expect(try connections[number % 2].create("c", "\(number)", "1").result != nil) }
        #expect(try connections[1].delete("c", "x").result != nil)
        for (connection, reader) in zip(connections, readers) {
            #expect(try Self.page(connection, after: reader.cursor).changes.isEmpty, "something older may still come")
        }
        let second = try OpenTransaction(server, 2)
        #expect(try connections[0].create("c", "4", "1").result != nil)
        var late = Reader(connection: connections[2], cursor: try Self.page(connections[2], after: "now").cursor)
        #expect(try connections[1].create("c", "5", "1").result != nil)
        let waiting = try zip(daemons, readers).map { daemon, reader in
            let connection = try daemon.connect()
            let params = Connection.changesParams("c", reader.cursor, #""wait":300"#)
            try connection.sendFrame(Connection.request("collection.changes", params, id: "1"))
            return connection
        }
        try first.end(isCommitted: isCommitted)
        for connection in waiting { #expect(try Connection.ChangesPage(connection.receive()).ids.first == "0") }
        for index in readers.indices {
            try readers[index].read { $0.contains("-x") }
            #expect(Array(readers[index].told.prefix(6)) == ["x", "0", "1", "2", "3", "-x"])
        }
        try second.end(isCommitted: isCommitted)
        for index in readers.indices {
            try readers[index].read { $0.count >= 8 }
            #expect(readers[index].told == ["x", "0", "1", "2", "3", "-x", "4", "5"])
        }
        try late.read { $0.contains("5") }
        #expect(late.told.last == "5")
    }

    /// Log and status name what holds a feed up, and say when nothing does any more.
    @Test func whatHoldsAFeedUpForLongIsNamed() throws {
        #expect(try server.query(OpenTransaction.tables) != nil)
        let daemon = try daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "x", "1").result != nil)
        let open = try OpenTransaction(server, 1)
        #expect(try connection.create("c", "y", "1").result != nil)
        let deadline = Deadline()
        func awaitNotice(_ isThere: Bool) throws -> String {
            while true {
                let notice = try connection.backend("main")?["notice"]?.string ?? ""
                if notice.isEmpty != isThere { return notice }
                try #require(!deadline.hasPassed, "\(notice)")
                poll(nil, 0, 50)
            }
        }
        let notice = try awaitNotice(true)
        #expect(notice.contains("of the server (user crudd, open1) has ended"), "\(notice)")
        #expect(daemon.log.contains("changes are not shown before the transaction of process"))
        try open.end(isCommitted: true)
        _ = try awaitNotice(false)
        #expect(daemon.log.contains("changes are shown again"))
    }

    /// A transaction that has begun before the removal of a record, and has waited for that, stores it again: it has
    /// the lower number, and what is told last is what is there.
    @Test func whatIsStoredBehindALaterRemovalIsThere() throws {
        #expect(try server.query(OpenTransaction.tables) != nil)
        let connection = try daemon().connect()
        #expect(try connection.create("c", "x", "1").result != nil)
        var reader = Reader(connection: connection)
        try reader.read { $0 == ["x"] }
        let older = try OpenTransaction(
            server, 1,
            last: """
                INSERT INTO crudd.c (id, revision, item, sequence)
                VALUES ('x', 'again', '2', (txid_current() << 20) + 1)
                """)
        #expect(try connection.delete("c", "x").result != nil)
        #expect(try connection.create("c", "y", "1").result != nil)
        try older.end(isCommitted: true)
        try reader.read { $0.contains("y") }
        #expect(reader.told.filter { $0.hasSuffix("x") }.last == "x", "\(reader.told)")
        #expect(try connection.item("c", "x") == "2")
    }

    /// Whichever daemon removes what has expired, the one that has stored it or another, each follower is told.
    @Test func whatExpiresIsRemovedAtAll() throws {
        let daemons = try (0..<4).map { number in try daemon(changes: number == 3 ? "false" : "true") }
        let connections = try daemons.map { try $0.connect() }
        #expect(try connections[0].create("c", "stays", "1").result != nil)
        var readers = try connections.prefix(3).map { connection in
            var reader = Reader(connection: connection)
            try reader.read { $0 == ["stays"] }
            return reader
        }
        var removed: Set<String> = []
        for (number, connection) in connections.enumerated() {
            for ttl in ["0.1", "0.6", "3"] {
                let params = Connection.params("c", "\(number) \(ttl)", item: "1", more: ["ttl": ttl])
                #expect(try connection.call("record.create", params).result != nil)
                removed.insert("-\(number) \(ttl)")
            }
        }
        // What it has stored may be there yet.
        for index in [0, 3] { try daemons[index].kill() }
        for index in 1...2 {
            try readers[index].read { removed.isSubset(of: $0) }
            #expect(!readers[index].told.contains("-stays"))
        }
        readers[0].connection = try daemons[0].restarted().connect()
        try readers[0].read { removed.isSubset(of: $0) }
        #expect(try connections[1].call("record.count", #"{"collection":"c"}"#).result?["count"]?.integer == 1)
    }
}
