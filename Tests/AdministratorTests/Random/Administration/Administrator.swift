import CRUDTestSupport
import Glibc

/// Does to a daemon, at random, what administrators do, beside clients that check every reply.
///
/// What it was promised is checked as well: a call that was refused has changed nothing, the file that is in force is
/// accepted again, and each collection is where the file wants it or on its way there.
final class Administrator {
    /// What became of a call.
    enum CallOutcome {
        case reply(Reply)
        /// The daemon was killed meanwhile.
        case lost
    }

    let installation: Installation
    let load: ClientLoad
    let trace: Trace
    var random: SeededGenerator
    private(set) var daemon: Daemon
    private(set) var connection: Connection
    /// The last file that was accepted.
    var layout: Layout
    /// The collections' feeds of changes.
    var feeds: [String: FeedFollower] = [:]
    /// Places other than that of a collection which may have records of it.
    var leftovers: [String: Set<Place>] = [:]
    /// Those of them of which the catalog was lost: no drop removes what is there, and no move goes there.
    var forgotten: [String: Set<Place>] = [:]
    /// Where each collection has been when it was last asked for.
    var served: [String: Place] = [:]
    /// What is broken now.
    var faults = Faults()
    /// Drops without a known outcome, which may take effect until the daemon ends.
    var openDrops: [(collection: String, ticket: Int)] = []
    /// How many reloads have been compared with what a dry run had said.
    var forecastCount = 0
    let excluded: Set<String>
    private var callCount = 0
    private let stateDisk: StateDisk?

    static let timeout = Duration.seconds(120)
    static let collections = ["a": 240, "b": 160, "c": 40, "d": 40, "e": 20]

    /// - Parameter excluded: the names of actions that are left out, and `hints` if messages are not checked.
    init(seed: UInt64, without excluded: Set<String>) throws {
        self.excluded = excluded
        random = SeededGenerator(seed: seed)
        trace = Trace()
        load = ClientLoad(Self.collections, seed: seed ^ 0xC11E47, trace: trace)
        layout = Layout(
            rules: Self.collections.mapValues { _ in
                Layout.Rule(place: Place("main", "json"), indexes: ["n"], changes: false)
            })
        layout.rules["a"]?.changes = true
        feeds["a"] = FeedFollower()
        // All plugins are copied at the start.
        installation = try Installation(layout.configuration())
        stateDisk = StateDisk(at: "\(installation.path)/state")
        daemon = try Daemon(on: installation)
        connection = try daemon.connect()
        try load.connect(4, to: daemon)
    }

    deinit {
        faults.endChild()
        try? daemon.kill()
        // Before the directory is removed that it is mounted in.
        stateDisk?.unmount()
    }

    var names: [String] { layout.rules.keys.sorted() }

    func number(below limit: Int) -> Int { Int(random.next() % UInt64(limit)) }

    func oneOf<Element>(_ elements: [Element]) -> Element { elements[number(below: elements.count)] }

    /// One in `count`.
    func happens(oneIn count: Int) -> Bool { number(below: count) == 0 }

    // MARK: Calls

    /// Calls a method while clients go on with their work.
    ///
    /// - Parameter killing: the daemon is killed after so many replies to clients, if it has not replied by then.
    func call(_ method: String, _ params: String = "{}", killing: Int? = nil) throws -> CallOutcome {
        callCount += 1
        try connection.sendFrame(Connection.request(method, params, id: "\(callCount)"))
        let timeout = killing == nil ? Self.timeout : .seconds(2)
        if let reply = try load.run(on: daemon, connection, replies: killing ?? .max, within: timeout) {
            guard reply.id.integer == callCount else { throw Violation(description: "a reply to another: \(reply)") }
            if let name = reply.error?.name, ["internal_error", "corrupt"].contains(name) {
                throw Violation(description: "\(method) \(params): \(reply)")
            }
            return .reply(reply)
        }
        guard killing != nil else { throw Violation(description: "\(method) \(params) has no reply") }
        try end()
        return .lost
    }

    /// A call during which the daemon is not killed.
    func reply(to method: String, _ params: String = "{}") throws -> Reply {
        guard case .reply(let reply) = try call(method, params) else { throw Failure("cannot be") }
        return reply
    }

    /// No client uses the collection from now on.
    func pause(_ name: String) throws {
        load.paused.insert(name)
        guard try load.awaitPaused(on: daemon, within: Self.timeout) else {
            throw Violation(description: "\(name): requests have no reply")
        }
    }

    // MARK: The daemon's life

    /// Kills the daemon. What only its memory has is gone.
    func end(gracefully: Bool = false) throws {
        faults.endChild()
        // While it ends, requests have replies.
        if gracefully { try daemon.stop(until: Deadline(Self.timeout)) } else { try daemon.kill() }
        try load.endAll()
        openDrops = []
        for name in names where isPerhapsInMemory(name) {
            trace.add("may have been in memory", to: [name])
            feeds[name]?.mayEnd()
            if let drop = load.histories[name]?.beginDrop() { try load.histories[name]?.endDrop(drop, .unknown) }
        }
    }

    private func isPerhapsInMemory(_ name: String) -> Bool {
        layout.rules[name]?.place.backend == "memory" || served[name]?.backend == "memory"
    }

    /// Starts the daemon with the file as it is.
    ///
    /// - Returns: nil if it was accepted, else what the daemon has said.
    func start(_ arguments: [String] = []) throws -> String? {
        let before = daemon.log.utf8.count
        do {
            daemon = try Daemon(on: installation, arguments: arguments)
        } catch let failure as Failure {
            let log = String(decoding: daemon.log.utf8.dropFirst(before), as: UTF8.self)
            guard failure.description.contains("ended: exited") else { throw failure }
            return "\(failure.description.split(separator: "\n").first ?? "") \(log)"
        }
        connection = try daemon.connect()
        try load.connect(2 + number(below: 5), to: daemon)
        return nil
    }

    /// Starts the daemon with the file that was in force, which must be accepted.
    func startInForce() throws {
        try setFull(false)
        try installation.configure(layout.configuration())
        if let refusal = try start() {
            throw Violation(description: "the file in force was refused at a start: \(refusal)")
        }
    }

    // MARK: Faults

    func setFull(_ isFull: Bool) throws {
        guard faults.isFull != isFull, let stateDisk else { return }
        try stateDisk.setFull(isFull)
        faults.isFull = isFull
    }

    /// Everything works again.
    func heal() throws {
        faults.endChild()
        faults.locks = [:]
        try setFull(false)
    }
}
