import CRUDTestSupport
import Glibc
import Testing

/// SQLite's columns of indexes that are not there any more, which later changes of the indexes remove, beside queries
/// that began before, and beside a kill.
@Suite struct FormerColumnTests {
    private static let count = 300
    /// One layout after the other: each takes the columns of earlier ones away.
    private static let layouts = ["n", "", "m", "n, m", "m", "", "m, n", "n"]

    private static func configuration(_ indexes: String, isolation: String = "inline", loops: Int? = nil)
        -> Configuration
    {
        Configuration(
            backends: "main: {plugin: sqlite, isolation: \(isolation), options: {path: $DIRECTORY/main.sqlite}}",
            collections: "c: {backend: main, indexes: [\(indexes)]}", loops: loops)
    }

    private static func item(_ number: Int) -> String { #"{"n":\#(number % 10),"m":\#(number % 7)}"# }

    private static func query(_ property: String, _ value: Int) -> String {
        let filter = #"{"op":"=","args":[{"property":"\#(property)"},\#(value)]}"#
        return #"{"collection":"c","filter":\#(filter),"limit":1000}"#
    }

    /// How many records a query finds.
    private static func expected(_ property: String, _ value: Int) -> Int {
        (0..<count).count { $0 % (property == "n" ? 10 : 7) == value }
    }

    private static func expectComplete(_ reply: Reply, _ property: String, _ value: Int, _ text: String) {
        let found = reply.result?["records"]?.elements?.count
        #expect(found == expected(property, value), "\(text), \(property) \(value): \(reply.error?.message ?? "")")
    }

    private static func fill(_ connection: Connection) throws {
        let requests = (0..<count).map { number in
            (method: "record.create", params: Connection.params("c", "\(number)", item: item(number)))
        }
        for reply in try connection.pipeline(requests) { #expect(reply.result != nil) }
    }

    /// How many columns of keys there are.
    private static func columns(_ installation: Installation) throws -> Int? {
        let sql = "SELECT count(*) FROM pragma_table_info('c') WHERE name LIKE 'crudd_key_%'"
        return Int(try SQLiteDatabase.value(sql, in: "\(installation.path)/main.sqlite"))
    }

    /// Queries are in flight while a reload takes their index away, and the next ones its column: they find all
    /// records, or are to be repeated.
    @Test(arguments: ["inline", "process"])
    func queriesInFlightAreComplete(isolation: String) throws {
        let daemon = try Daemon(Self.configuration("n, m", isolation: isolation, loops: 2))
        let administrator = try daemon.connect()
        try Self.fill(administrator)
        let readers = try (0..<3).map { _ in try daemon.connect() }
        let values = (0..<10).flatMap { value in ["n", "m"].map { ($0, value) } }
        for round in 0..<3 {
            for layout in Self.layouts {
                for reader in readers {
                    let requests = values.enumerated().map { number, value in
                        Connection.request("record.query", Self.query(value.0, value.1), id: "\(number)")
                    }
                    try reader.send(requests.flatMap { Connection.frame($0) })
                }
                try daemon.installation.configure(Self.configuration(layout, isolation: isolation, loops: 2))
                _ = try administrator.reload()
                var interrupted: [(String, Int)] = []
                for reader in readers {
                    for _ in values {
                        let reply = try reader.receive()
                        let (property, value) = values[try #require(reply.id.integer)]
                        if reply.error?.name == "unavailable" {
                            interrupted.append((property, value))
                        } else {
                            Self.expectComplete(reply, property, value, "round \(round), indexes [\(layout)]")
                        }
                    }
                }
                // Where the index has gone in the middle of a scan the client is told to repeat it.
                for (property, value) in interrupted {
                    let reply = try administrator.call("record.query", Self.query(property, value))
                    Self.expectComplete(reply, property, value, "round \(round), indexes [\(layout)], repeated")
                }
            }
        }
        #expect(try daemon.stop() == .exited(0))
        #expect(try Self.columns(daemon.installation) ?? .max <= 3)
    }

    /// The daemon is killed before or after each sync of the database while indexes come and go: the next start has the
    /// indexes of its file, all records, and as few columns as if nothing had happened.
    @Test(arguments: [false, true])
    func aKillLeavesOneLayout(isAfter: Bool) throws {
        let disk = try FaultyDisk()
        let installation = try Installation(Self.configuration("n"))
        var daemon = try Daemon(on: installation, environment: disk.variables)
        try Self.fill(daemon.connect())
        var kills = 0
        for number in 1...12 {
            try disk.kill(atCall: number, of: "main.sqlite", isAfter: isAfter)
            var layout = "n"
            do {
                let connection = try daemon.connect()
                for next in Self.layouts.dropFirst() {
                    layout = next
                    try installation.configure(Self.configuration(next))
                    _ = try connection.reload()
                    // Its indexes are there once the collection is opened.
                    _ = try connection.call("record.count", #"{"collection":"c"}"#)
                }
            } catch is Failure {
                kills += 1
            }
            try disk.heal()
            try daemon.kill()
            daemon = try Daemon(on: installation, environment: disk.variables)
            let connection = try daemon.connect()
            for (property, value) in [("n", 3), ("m", 3)] {
                let reply = try connection.call("record.query", Self.query(property, value))
                Self.expectComplete(reply, property, value, "call \(number), indexes [\(layout)]")
            }
            for next in ["", "n"] {
                try installation.configure(Self.configuration(next))
                _ = try connection.reload()
                #expect(try connection.call("record.count", #"{"collection":"c"}"#).result?["count"]?.integer == 300)
            }
        }
        #expect(kills > 3)
        #expect(try daemon.stop() == .exited(0))
        #expect(try Self.columns(installation) ?? .max <= 3)
    }
}
