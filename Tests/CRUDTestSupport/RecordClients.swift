import CRUDThreads
import Glibc
import Synchronization

/// Clients that write and read a few records of the collection `c`, each on a thread of its own, whatever becomes of
/// the daemon's backend; and the check of what they were told. They may be clients of several daemons, which write the
/// same records.
package final class RecordClients: Sendable {
    private let daemons: [RestartedDaemon]
    private let clients: [RecordClient]
    private let threads: [Thread]
    private let isOver: Flag

    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    package convenience init(_ count: Int = 3, of daemon: Daemon) throws {
        try self.init(count, of: [RestartedDaemon(daemon)])
    }

    /// - Parameter daemons: the clients are distributed over them, and connect again to one that was killed.
    package init(_ count: Int, of daemons: [RestartedDaemon]) throws {
        let isOver = Flag()
        let histories = RecordHistories(records: RecordClient.records)
        let clients = try (0..<count).map { try RecordClient($0 + 1, daemons[$0 % daemons.count], histories) }
        threads = try clients.map { client in
            try Thread(named: "client") { client.run { isOver.isSet.load(ordering: .acquiring) } }
        }
        self.daemons = daemons
        self.clients = clients
        self.isOver = isOver
    }

    deinit { end() }

    private func end() {
        guard !isOver.isSet.exchange(true, ordering: .acquiringAndReleasing) else { return }
        for thread in threads { thread.join() }
    }

    /// Waits until every client has been acknowledged some more writes.
    ///
    /// - Returns: how long one of them waited for an acknowledgement, at most, since this was called last.
    @discardableResult
    package func recover(after what: String, within timeout: Duration = Deadline.timeout) throws -> Duration {
        let goals = clients.map { $0.acknowledged + 5 }
        let deadline = Deadline(timeout)
        while zip(clients, goals).contains(where: { $0.acknowledged < $1 }) {
            if let failure = clients.lazy.compactMap(\.failure).first { throw Failure("after \(what): \(failure)") }
            guard !deadline.hasPassed else {
                throw Failure("no writes after \(what)\n\(daemons.map(\.current.log).joined(separator: "\n"))")
            }
            poll(nil, 0, 10)
        }
        return clients.map { $0.takeLongestGap() }.max() ?? .zero
    }

    /// Ends the clients.
    ///
    /// - Returns: what cannot have happened.
    package func violations() -> [String] {
        end()
        return clients.compactMap(\.failure)
    }
}
