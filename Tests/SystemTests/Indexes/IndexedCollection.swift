import CRUDTestSupport
import Testing

/// A collection `c` with records, to which a reload adds the indexes `n` and `s`.
final class IndexedCollection {
    /// Where the collection is.
    enum Place: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case sqlite, memory, postgresql
        case sqliteInChild = "sqlite in a child"
        case memoryInChild = "memory in a child"
        case postgresqlInChild = "postgresql in a child"

        var isInChild: Bool { rawValue.hasSuffix("in a child") }
        var isOnServer: Bool { rawValue.hasPrefix("postgresql") }
        var testDescription: String { rawValue }
    }

    /// How far the build of an index has got.
    struct Progress: Equatable {
        var property: String
        var indexed: Int
        var total: Int
    }

    let place: Place
    let count: Int
    /// Where the database and the daemon's state are.
    private let directory: String
    private(set) var daemon: Daemon
    private(set) var connection: Connection

    /// Starts a daemon and fills the collection with the records `0` to `count - 1`: see ``item(_:)``.
    ///
    /// - Parameter directory: where the database and the daemon's state are; by default in the installation.
    init(_ place: Place, records count: Int, in directory: String = "$DIRECTORY") throws {
        self.place = place
        self.count = count
        self.directory = directory
        if directory != "$DIRECTORY" { try Files.makeDirectory("\(directory)/state", mode: 0o700) }
        daemon = try Daemon(on: Installation(text: Self.configuration(place, in: directory, isIndexed: false)))
        connection = try daemon.connect()
        for start in stride(from: 0, to: count, by: 1000) {
            let operations = (start..<min(start + 1000, count)).map { number in
                #"{"op":"create","collection":"c","id":"\#(number)","item":\#(Self.item(number))}"#
            }
            let reply = try connection.call("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
            let results = try #require(reply.result?["results"]?.elements, "\(reply)")
            #expect(results.allSatisfy { $0["result"] != nil })
        }
    }

    static func item(_ number: Int) -> String { #"{"n":\#(number),"s":"s\#(number % 10)"}"# }

    private static func configuration(_ place: Place, in directory: String, isIndexed: Bool) -> String {
        let plugin =
            switch place {
            case .sqlite, .sqliteInChild: "plugin: sqlite, options: {path: \(directory)/main.sqlite}"
            case .memory, .memoryInChild: "plugin: memory"
            case .postgresql, .postgresqlInChild: "plugin: postgresql, options: \(PostgreSQLServer.options("main"))"
            }
        let isolation = place.isInChild ? "isolation: process, " : ""
        return Configuration(
            backends: "main: {\(isolation)\(plugin)}",
            collections: "c: {backend: main\(isIndexed ? ", indexes: [n, s]" : "")}"
        ).text.replacing("$DIRECTORY/state", with: "\(directory)/state")
    }

    // MARK: Indexes

    func addIndexes() throws {
        try daemon.installation.configure(text: Self.configuration(place, in: directory, isIndexed: true))
        #expect(try connection.reload() == ["collection c: indexes changed"])
    }

    /// The progress of the indexes that are being built.
    func progress() throws -> [Progress] {
        let description = try connection.call("collection.describe", #"{"collection":"c"}"#)
        let result = try #require(description.result, "\(description)")
        guard let indexing = result["indexing"] else { return [] }
        return try (indexing.elements ?? []).map { index in
            // Where the storage does not have it yet, as its server is late, it says why.
            let members = index.members?.map(\.name).filter { $0 != "reason" }
            #expect(members == ["property", "state", "indexed", "total"])
            #expect(index["state"]?.string == "building")
            return Progress(
                property: try #require(index["property"]?.string), indexed: try #require(index["indexed"]?.integer),
                total: try #require(index["total"]?.integer))
        }
    }

    /// Waits for the first step of a build, and at least as many records.
    @discardableResult
    func awaitProgress(_ records: Int = 1) throws -> Progress {
        let deadline = Deadline()
        while true {
            let first = try #require(try progress().first, "the build is over")
            if first.total > 0, first.indexed >= records { return first }
            try #require(!deadline.hasPassed, "\(first)")
        }
    }

    /// Waits for the end of all builds.
    ///
    /// - Returns: how many records have been looked at meanwhile.
    @discardableResult
    func awaitIndexes() throws -> Int {
        let deadline = Deadline()
        var indexed = 0
        while case let progress = try progress(), !progress.isEmpty {
            try #require(!deadline.hasPassed, "\(progress)")
            indexed = max(indexed, progress.map(\.indexed).max() ?? 0)
        }
        return indexed
    }

    // MARK: Queries

    /// The ids that have a value, in order, and the property whose index has served.
    func find(_ property: String, _ value: String) throws -> (ids: [String], index: String?) {
        let filter = #"{"op":"=","args":[{"property":"\#(property)"},\#(value)]}"#
        let reply = try connection.query("c", #"{"filter":\#(filter),"limit":10000,"explain":true}"#)
        let records = try #require(reply.result?["records"]?.elements, "\(reply)")
        return (records.compactMap { $0["id"]?.string }, reply.result?["plan"]?["index"]?.string)
    }

    /// Both indexes serve and find what the records were created with.
    func checkIndexes() throws {
        for number in [0, count / 2, count - 1] {
            #expect(try find("n", "\(number)") == (["\(number)"], "n"))
        }
        let found = try find("s", #""s3""#)
        #expect(found.ids.sorted() == (0..<count).filter { $0 % 10 == 3 }.map(String.init).sorted())
        #expect(found.index == "s")
        let total = try connection.call(
            "record.count", #"{"collection":"c","filter":{"op":">=","args":[{"property":"n"},0]}}"#)
        #expect(total.result?["count"]?.integer == count)
    }

    // MARK: The daemon

    var backend: JSON { get throws { try #require(try connection.backend("main")) } }

    /// - Parameter repair: what happens before the daemon is started again.
    func kill(repair: () throws -> Void = {}) throws {
        try daemon.kill()
        try repair()
        daemon = try daemon.restarted()
        connection = try daemon.connect()
    }

    func stop() throws {
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Executes SQL beside the daemon.
    func execute(_ sql: String) throws {
        try SQLiteDatabase.execute(sql, in: "\(daemon.installation.path)/main.sqlite")
    }
}
