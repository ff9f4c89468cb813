import CRUDThreads
import Glibc
import Synchronization

/// A client of each of several daemons, on a thread of its own, that connects again to a daemon that was killed.
final class ReconnectingClients: Sendable {
    private static let lateMilliseconds: Int32 = 3000
    /// Above those of other clients of the same collection.
    private static let firstClient = 50

    private final class State: Sendable {
        let isOver = Atomic(false)
        let failures = Mutex<[String]>([])
    }

    private let state: State
    private let threads: [Thread]

    /// - Parameter body: what a client does again and again, with a number that it is given only once and that rises;
    ///   ``Item``s are of the client that it is by its last two digits. It may throw what is no ``Violation`` where the
    ///   daemon is killed.
    init(
        of daemons: [RestartedDaemon],
        _ body: @escaping @Sendable (_ number: Int, inout SeededGenerator, Connection) throws -> Void
    ) throws {
        let state = State()
        self.state = state
        threads = try daemons.enumerated().map { index, daemon in
            try Thread(named: "client") {
                do {
                    try Self.run(Self.firstClient + index, daemon, state, body)
                } catch {
                    state.failures.withLock { $0.append("\(error)") }
                }
            }
        }
    }

    deinit { _ = end() }

    /// Ends the clients.
    ///
    /// - Returns: what they threw.
    func end() -> [String] {
        if !state.isOver.exchange(true, ordering: .acquiringAndReleasing) {
            for thread in threads { thread.join() }
        }
        return state.failures.withLock(\.self)
    }

    private static func run(
        _ client: Int, _ daemon: RestartedDaemon, _ state: State,
        _ body: (_ number: Int, inout SeededGenerator, Connection) throws -> Void
    ) throws {
        var generator = SeededGenerator(seed: UInt64(client))
        var number = client
        var connected: (kills: Int, connection: Connection)?
        var deadline = Deadline()
        while !state.isOver.load(ordering: .acquiring) {
            do {
                guard let connection = try connected ?? daemon.connect() else {
                    poll(nil, 0, 10)
                    continue
                }
                connected = connection
                number += 100
                try body(number, &generator, connection.connection)
                deadline = Deadline()
            } catch let violation as Violation {
                throw violation
            } catch {
                guard connected.map({ daemon.kills > $0.kills }) ?? !deadline.hasPassed else { throw error }
                connected = nil
                // The server may still execute what the daemon had sent.
                poll(nil, 0, lateMilliseconds)
            }
        }
    }
}
