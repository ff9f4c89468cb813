import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization

/// Follows the collection `c`, whose items are ``Item``s, at a daemon, which may be one of several that share it, on a
/// thread of its own. It connects again where the daemon was killed, and begins again at "start" where its cursor has
/// expired.
final class ChangeFollower: Sendable {
    /// A change, as it was told.
    struct Event: Hashable, Sendable {
        let id: String
        /// Nil: the record was removed.
        let revision: String?
        let item: Item?
    }

    private final class Shared: Sendable {
        struct State {
            var events: [Event] = []
            /// The revisions of the records that are there, by id.
            var known: [String: String] = [:]
            /// The highest number that each client has given a record.
            var numbers: [String: Int] = [:]
            var beginnings = 0
            var failure: String?
            var isOver = false
        }

        let state = Mutex(State())
    }

    private let daemon: RestartedDaemon
    private let shared: Shared
    private let thread: Thread

    /// - Parameter limit: how many changes a page has at most.
    init(of daemon: RestartedDaemon, limit: Int = 100) throws {
        self.daemon = daemon
        let shared = Shared()
        self.shared = shared
        thread = try Thread(named: "follower") {
            do {
                try Self.follow(daemon, limit, shared)
            } catch {
                shared.state.withLock { $0.failure = "\(error)" }
            }
        }
    }

    deinit { end() }

    private func end() {
        let wasOver = shared.state.withLock { state in
            defer { state.isOver = true }
            return state.isOver
        }
        if !wasOver { thread.join() }
    }

    // MARK: Following

    private static func follow(_ daemon: RestartedDaemon, _ limit: Int, _ shared: Shared) throws {
        var cursor = "start"
        while !shared.state.withLock(\.isOver) {
            let current = daemon.current
            do {
                try follow(current.connect(), limit, shared, from: &cursor)
            } catch let violation as Violation {
                throw violation
            } catch {
                // The connection is lost: the daemon was killed, and is followed by another.
                let deadline = Deadline()
                while daemon.current === current {
                    guard !deadline.hasPassed, !shared.state.withLock(\.isOver) else { throw error }
                    poll(nil, 0, 10)
                }
            }
        }
    }

    private static func follow(
        _ connection: Connection, _ limit: Int, _ shared: Shared, from cursor: inout String
    ) throws {
        while !shared.state.withLock(\.isOver) {
            let reply = try connection.call(
                "collection.changes", Connection.changesParams("c", cursor, #""wait":1,"limit":\#(limit)"#))
            switch reply.error?.name {
            case nil:
                let page = try Connection.ChangesPage(reply)
                try shared.state.withLock { state throws(Violation) in
                    for change in page.changes { try note(change, in: &state) }
                }
                cursor = page.cursor
            case "cursor_expired":
                cursor = "start"
                shared.state.withLock { state in
                    state.events = []
                    state.known = [:]
                    state.numbers = [:]
                    state.beginnings += 1
                }
                poll(nil, 0, 10)
            case "unavailable": poll(nil, 0, 10)
            default: throw Violation(description: "\(reply)")
            }
        }
    }

    private static func note(_ change: JSON, in state: inout Shared.State) throws(Violation) {
        guard let id = change["id"]?.string else { throw Violation(description: "no id: \(change.text)") }
        if change["deleted"]?.boolean == true {
            state.known[id] = nil
            state.events.append(Event(id: id, revision: nil, item: nil))
            return
        }
        guard let revision = change["revision"]?.string, let item = Item(change["item"]) else {
            throw Violation(description: "not a change: \(change.text)")
        }
        state.known[id] = revision
        state.events.append(Event(id: id, revision: revision, item: item))
        // Clients number their writes, one after the other, and what one has written does not come back.
        for (kind, number) in [("n", item.number), ("p", item.patch)] where number > 0 {
            let place = "\(id) \(kind) \(number % 100)"
            let highest = state.numbers[place] ?? 0
            guard number >= highest else {
                throw Violation(description: "record \(id) goes back: \(kind) \(number) after \(highest)")
            }
            state.numbers[place] = number
        }
    }

    // MARK: What it was told

    /// Why it does not follow any more; nil: it does.
    var failure: String? { shared.state.withLock(\.failure) }

    /// How often its cursor has expired.
    var beginnings: Int { shared.state.withLock(\.beginnings) }

    /// What it was told since it has begun at "start" last.
    var events: [Event] { shared.state.withLock(\.events) }

    /// Waits until the follower has heard of everything, and ends it; nothing may be written any more.
    ///
    /// - Returns: how what it was told differs from what is stored.
    func differences() throws -> [String] {
        let stored = try revisions()
        let deadline = Deadline()
        while shared.state.withLock({ $0.known != stored && $0.failure == nil }), !deadline.hasPassed {
            poll(nil, 0, 20)
        }
        end()
        let (known, failure) = shared.state.withLock { ($0.known, $0.failure) }
        return [failure].compactMap(\.self)
            + Set(known.keys).union(stored.keys).sorted().compactMap { id in
                known[id] == stored[id]
                    ? nil : "\(id): \(known[id] ?? "none") was told, \(stored[id] ?? "none") is stored"
            }
    }

    /// Of all records, by id, as its daemon reads them.
    private func revisions() throws -> [String: String] {
        let connection = try daemon.current.connect()
        let deadline = Deadline()
        var found: [String: String] = [:]
        var after = ""
        while true {
            let reply = try connection.call("record.query", #"{"collection":"c"\#(after)}"#)
            guard let records = reply.result?["records"]?.elements else {
                guard reply.error?.name == "unavailable", !deadline.hasPassed else { throw Failure("\(reply)") }
                poll(nil, 0, 20)
                continue
            }
            for record in records { found[record["id"]?.string ?? ""] = record["revision"]?.string }
            guard let cursor = reply.result?["cursor"]?.string else { return found }
            after = #","cursor":"\#(cursor)""#
        }
    }
}
