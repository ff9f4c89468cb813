import CRUDThreads
import Glibc
import Synchronization

/// Clients of several daemons that change two records together, by atomic batches, and look by others whether both are
/// what they were read as: whenever they are, they hold the same.
package final class PairClients: Sendable {
    private static let ids = ["left", "right"]
    private static let lateMilliseconds: Int32 = 3000
    /// Above those of other clients of the records' collection.
    private static let firstClient = 50

    private final class State: Sendable {
        let isOver = Atomic(false)
        let failures = Mutex<[String]>([])
        /// How many batches of checks have held.
        let looks = Atomic(0)
    }

    private let state: State
    private let threads: [Thread]

    package init(of daemons: [RestartedDaemon]) throws {
        let state = State()
        self.state = state
        threads = try daemons.enumerated().map { index, daemon in
            try Thread(named: "pair") {
                do {
                    try Self.run(Self.firstClient + index, daemon, state)
                } catch {
                    state.failures.withLock { $0.append("\(error)") }
                }
            }
        }
    }

    deinit { end() }

    private func end() {
        guard !state.isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        for thread in threads { thread.join() }
    }

    /// Ends the clients.
    ///
    /// - Returns: what cannot have happened, and what was not expected.
    package func violations() -> [String] {
        end()
        let looks = state.looks.load(ordering: .acquiring)
        return state.failures.withLock(\.self) + (looks == 0 ? ["no pair was looked at"] : [])
    }

    private static func run(_ number: Int, _ daemon: RestartedDaemon, _ state: State) throws {
        var generator = SeededGenerator(seed: UInt64(number))
        var value = number
        var connected: (kills: Int, connection: Connection)?
        while !state.isOver.load(ordering: .acquiring) {
            do {
                guard let (_, connection) = try connected ?? daemon.connect() else {
                    poll(nil, 0, 10)
                    continue
                }
                if connected == nil { connected = (daemon.kills, connection) }
                value += 100
                if Bool.random(using: &generator) {
                    try write(value, connection)
                } else if try look(connection) {
                    state.looks.add(1, ordering: .relaxed)
                }
            } catch let violation as Violation {
                throw violation
            } catch {
                guard connected.map({ daemon.kills > $0.kills }) ?? true else { throw error }
                connected = nil
                // The server may still execute what the daemon had sent.
                poll(nil, 0, lateMilliseconds)
            }
        }
    }

    private static func write(_ value: Int, _ connection: Connection) throws {
        let operations = ids.map {
            Connection.params("c", $0, item: Item(number: value).json, more: ["op": #""upsert""#])
        }
        _ = try batch(operations, connection)
    }

    /// - Returns: whether both were still what they had been read as.
    private static func look(_ connection: Connection) throws -> Bool {
        var items: [Item?] = []
        var checks: [String] = []
        for id in ids {
            let reply = try connection.read("c", id)
            if reply.error?.name == "unavailable" { return false }
            items.append(Item(reply.result?["item"]))
            let revision = reply.result?["revision"]?.string.map(JSON.quote) ?? "null"
            checks.append(#"{"op":"check","collection":"c","id":"\#(id)","ifRevision":\#(revision)}"#)
        }
        guard try batch(checks, connection) else { return false }
        guard items[0] == items[1] else { throw Violation(description: "one atomic batch has left \(items)") }
        return true
    }

    /// - Returns: whether it was applied.
    private static func batch(_ operations: [String], _ connection: Connection) throws -> Bool {
        let reply = try connection.call(
            "record.batch", #"{"atomic":true,"operations":[\#(operations.joined(separator: ","))]}"#)
        switch reply.error?.name {
        case nil: return true
        case "unavailable", "outcome_unknown": poll(nil, 0, 5)
        case "revision_mismatch", "record_exists", "record_not_found": break
        default: throw Failure("\(reply)")
        }
        return false
    }
}
