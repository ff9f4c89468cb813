import CRUDModel
import CRUDPlacement
import CRUDTestSupport
import Glibc
import Testing

/// A daemon with collections that are all in one situation, one or more for each event, and what they are to become by
/// the transitions.
final class PlacementTable {
    let situation: TableSituation
    let events: [TableEvent]
    let disk: FaultyDisk
    private let uses: Int
    private let installation: Installation
    private(set) var daemon: Daemon
    private(set) var connection: Connection
    /// The backends that are down, and those whose storage was replaced.
    var down: Set<String> = []
    var replaced: Set<String> = []
    /// Where the file wants the collections; one without a rule is not there.
    var wanted: [String: CollectionPlace] = [:]
    var placements: [String: Placement] = [:]
    /// What the record `1` of a collection is in each place that has it.
    var items: [String: [CollectionPlace: String]] = [:]
    /// The collections with a record that a property list cannot hold.
    var withNull: Set<String> = []

    /// - Parameter uses: how many collections there are for each event.
    init(_ situation: TableSituation, uses: Int) throws {
        self.situation = situation
        self.uses = uses
        events = TableEvent.allCases.filter { $0.applies(to: situation) }
        disk = try FaultyDisk()
        installation = try Installation(Self.configuration([:], replaced: []))
        daemon = try Daemon(on: installation, environment: disk.variables)
        connection = try daemon.connect()
    }

    var names: [String] { events.flatMap { event in (0..<uses).map { Self.name(event, $0) } } }

    /// A collection that is in none of this.
    static let unused = "unused"

    static func name(_ event: TableEvent, _ use: Int = 0) -> String { "\(event)-\(use)" }

    private static func configuration(_ wanted: [String: CollectionPlace], replaced: Set<String>) -> Configuration {
        let backends = ["p", "q", "w", "x", "y"].map { name in
            let file = replaced.contains(name) ? "another-\(name)" : name
            return "\(name): {plugin: sqlite, options: {path: $DIRECTORY/\(file).sqlite, synchronous: off}}"
        }
        let rules = wanted.sorted { $0.key < $1.key }.map { name, place in
            "\(name): {backend: \(place.backend), format: \(place.format.rawValue), changes: true}"
        }
        return Configuration(
            backends: backends.joined(separator: "\n"),
            collections: (rules + ["\(unused): {backend: p}"]).joined(separator: "\n"),
            // No event takes so long, on no machine.
            limits: "request_timeout: 110s")
    }

    // MARK: The daemon

    func start() throws {
        daemon = try Daemon(on: installation, environment: disk.variables)
        connection = try daemon.connect()
    }

    func restart() throws {
        #expect(try daemon.stop() == .exited(0))
        try start()
    }

    /// Has a backend be down from the next start on: no process can lock its database.
    private func setDown(_ place: CollectionPlace) throws {
        let lock = lock(of: place.backend)
        Files.remove(lock)
        guard symlink("nowhere", lock) == 0 else { throw Failure.system("symlink \(lock)") }
        down.insert(place.backend)
    }

    /// Has all backends be up from the next start on.
    func setUp() {
        for backend in down { Files.remove(lock(of: backend)) }
        down = []
    }

    private func lock(of backend: String) -> String { "\(installation.path)/\(backend).sqlite-lock" }

    func configure(_ wanted: [String: CollectionPlace]) throws {
        try installation.configure(Self.configuration(wanted, replaced: replaced))
    }

    func reload(force: Bool = false, move: Bool = false) throws {
        let reply = try connection.call("daemon.reload", #"{"force":\#(force),"move":\#(move)}"#)
        guard reply.error == nil else { throw Failure("\(situation.testDescription): \(reply)") }
    }

    /// Has the file want all collections in one place.
    private func reloadAll(at place: CollectionPlace?, force: Bool = false, move: Bool = false) throws {
        wanted = [:]
        for name in names { wanted[name] = place }
        try configure(wanted)
        try reload(force: force, move: move)
    }

    func awaitStatus(_ text: String, _ isWanted: (JSON) -> Bool) throws {
        let deadline = Deadline()
        while let status = try connection.call("daemon.status").result {
            if isWanted(status) { return }
            try #require(!deadline.hasPassed, "\(situation.testDescription): \(text): \(status.text)")
            poll(nil, 0, 5)
        }
    }

    /// What the catalog's file says of a collection.
    func recorded(_ name: String) throws -> Placement {
        var placement = try Catalog(directory: "\(installation.path)/state").entry(Array(name.utf8)).placement
        placement.owner = nil
        return placement
    }

    // MARK: The situation

    /// Brings all collections into the situation.
    func prepare() throws {
        try createRecords()
        if situation.list == .originals { try leaveOriginals() }
        if situation.hasNull {
            for name in names { #expect(try connection.upsert(name, "zz", "null").result != nil) }
            withNull = Set(names)
        }
        if let cancelled = situation.cancelled { try beginMoves(to: cancelled) }
        try setDown(.y)
        if situation.list == .copies { try setDown(.q) }
        try restart()
        if situation.cancelled != nil { try reloadAll(at: .p) }
        if situation.state == .absent, situation.list == .obsolete { try dropAll() }
        if situation.state == .copying { try beginMoves(to: .q) }
        try setDown(.q)
        try restart()
        if situation.state == .planned { try reloadAll(at: .q, move: true) }
        for name in names {
            placements[name] = situation.placement
            if situation.state != .absent { items[name, default: [:]][.p] = "2" }
            if situation.list == .originals { items[name, default: [:]][.x] = "1" }
            try check(name, "at first")
        }
    }

    private func createRecords() throws {
        try reloadAll(at: situation.first ?? .p)
        guard let first = situation.first else { return }
        for name in names { #expect(try connection.upsert(name, "1", first == .x ? "1" : "2").result != nil) }
    }

    private func leaveOriginals() throws {
        if situation.state == .absent {
            try reloadAll(at: nil, force: true)
            return try reloadAll(at: .p)
        }
        try reloadAll(at: .p, move: true)
        try awaitStatus("the moves take long") { $0["moves"]?.elements?.isEmpty == true }
        for name in names { #expect(try connection.upsert(name, "1", "2").result != nil) }
    }

    /// Begins moves, all of which fail.
    private func beginMoves(to place: CollectionPlace) throws {
        try reloadAll(at: place, move: true)
        let expected = names.map { _ in "failed" }
        try awaitStatus("not all moves have failed") { status in
            status["moves"]?.elements?.compactMap { $0["phase"]?.string } == expected
        }
    }

    private func dropAll() throws {
        let drops = names.map { (method: "collection.drop", params: #"{"collection":"\#($0)"}"#) }
        for reply in try connection.pipeline(drops) { #expect(reply.result?["dropped"]?.boolean == true) }
        try reloadAll(at: .p)
    }
}
