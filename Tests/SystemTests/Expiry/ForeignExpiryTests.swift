import CRUDTestSupport
import Testing

/// Times of expiry that somebody has written into the storage, and that no client could have asked for.
@Suite struct ForeignExpiryTests {
    /// In SQL, and whether such a record has expired.
    private static let times: [(id: String, sql: String, isOver: Bool)] = [
        ("least", "-9223372036854775808", true), ("below", "-1", true), ("one", "1", true),
        ("none", "0", false), ("most", "9223372036854775807", false), ("real", "-1e300", false),
        ("fraction", "0.5", false), ("text", "'5 apples'", false), ("blob", "x'31'", false),
    ]

    /// Rows that have expired, more of them than are removed at once.
    private static let expired = (0..<200).map { (id: "expired\($0)", sql: "-9223372036854775808", isOver: true) }

    private static func isThere(_ connection: Connection, _ id: String) throws -> [Bool?] {
        let query = try connection.call("record.query", #"{"collection":"c","prefix":"\#(id)"}"#)
        let count = try connection.call("record.count", #"{"collection":"c","prefix":"\#(id)"}"#)
        return [
            try connection.item("c", id) != nil, try connection.exists("c", id),
            query.result?["records"]?.elements.map { $0.count == 1 }, count.result?["count"]?.integer.map { $0 == 1 },
        ]
    }

    /// - Parameter count: returns how many rows with a number below 0 are left.
    private func check(
        _ times: [(id: String, sql: String, isOver: Bool)], _ daemon: Daemon, _ count: () throws -> String?
    ) throws {
        let connection = try daemon.connect()
        for time in times {
            #expect(try Self.isThere(connection, time.id) == Array(repeating: !time.isOver, count: 4), "\(time)")
        }
        // What is over is removed by and by, and nothing else.
        let deadline = Deadline()
        while try count() != "0" { try #require(!deadline.hasPassed, "they stay") }
        for time in times where time.isOver {
            #expect(try connection.create("c", time.id, "1").result != nil, "\(time)")
        }
        for time in times {
            #expect(try Self.isThere(connection, time.id) == Array(repeating: true, count: 4), "\(time)")
        }
        let children = try connection.call("daemon.status").result?["backends"]?.elements ?? []
        #expect(children.allSatisfy { $0["restarts"]?.integer ?? 0 == 0 })
        #expect(try daemon.stop() == .exited(0), "\(daemon.log.suffix(2000))")
    }

    @Test(arguments: ["inline", "process"])
    func rowsOfSQLite(isolation: String) throws {
        let backend = "main: {plugin: sqlite, isolation: \(isolation), options: {path: $DIRECTORY/main.sqlite}}"
        var daemon = try Daemon(Configuration(backends: backend))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "new", "{}").result != nil)
        try daemon.stop()
        let rows = (Self.times + Self.expired).map { "('\($0.id)', '1', '\($0.id)', \($0.sql))" }
        try SQLiteDatabase.execute(
            "INSERT INTO c (id, item, revision, expires_at) VALUES \(rows.joined(separator: ","))",
            in: "\(daemon.installation.path)/main.sqlite")
        daemon = try daemon.restarted()
        try check(Self.times, daemon) {
            try SQLiteDatabase.value(
                "SELECT count(*) FROM c WHERE typeof(expires_at) = 'integer' AND expires_at < 0",
                in: "\(daemon.installation.path)/main.sqlite")
        }
    }

    @Test(arguments: ["inline", "process"])
    func rowsOfPostgreSQL(isolation: String) throws {
        let server = try PostgreSQLServer.shared()
        let schema = "times_\(isolation)"
        let options = #"{connection: "\#(server.connection)", schema: \#(schema)}"#
        var daemon = try Daemon(
            Configuration(backends: "main: {plugin: postgresql, isolation: \(isolation), options: \(options)}"))
        #expect(try daemon.connect().create("c", "new", "{}").result != nil)
        try daemon.stop()
        let times = Self.times.filter { Int($0.sql) != nil }
        let rows = (times + Self.expired).map { "('\($0.id)', '1', '\($0.id)', \($0.sql))" }.joined(separator: ",")
        #expect(try server.query("INSERT INTO \(schema).c (id, item, revision, expires_at) VALUES \(rows)") != nil)
        daemon = try daemon.restarted()
        try check(times, daemon) { try server.query("SELECT count(*) FROM \(schema).c WHERE expires_at < 0") }
    }
}
