import Synchronization

/// Clients of several daemons that read two or three records, one after the other, and then write some of them, and
/// check the rest, by an atomic batch; and the check whether all batches can have taken effect one after the other.
package final class BatchClients: Sendable {
    private static let idsAtOnce = 4
    /// Clients use other ids then, of which there are no records yet.
    private static let batchesPerGeneration = 300

    private let daemons: [RestartedDaemon]
    private let clients: ReconnectingClients
    private let history: History

    private final class History: Sendable {
        let state = Mutex(BatchHistory())
    }

    package init(of daemons: [RestartedDaemon]) throws {
        let history = History()
        self.history = history
        self.daemons = daemons
        clients = try ReconnectingClients(of: daemons) { number, generator, connection in
            try Self.execute(number, &generator, connection, history)
        }
    }

    /// Ends the clients, and reads what is there then at each daemon.
    ///
    /// - Returns: what cannot have happened, and what was not expected.
    package func violations() throws -> [String] {
        let failures = clients.end()
        for (index, daemon) in daemons.enumerated() {
            let connection = try daemon.current.connect()
            var found: [String: Int] = [:]
            let deadline = Deadline()
            for id in history.state.withLock(\.records) {
                var record = try connection.find(id)
                while record == nil, !deadline.hasPassed { record = try connection.find(id) }
                guard let record else { throw Failure("\(id) cannot be read") }
                found[id] = record.item?.number ?? 0
            }
            // Below the numbers of the clients.
            let batch = BatchHistory.Batch(index + 1, found: found, written: [])
            history.state.withLock { history in
                history.begin(batch)
                history.end(batch.number, .applied)
            }
        }
        return history.state.withLock { history in
            failures + history.violations() + (history.appliedCount <= daemons.count ? ["no batch was applied"] : [])
        }
    }

    private static func execute(
        _ number: Int, _ generator: inout SeededGenerator, _ connection: Connection, _ history: History
    ) throws {
        let generation = history.state.withLock(\.count) / batchesPerGeneration
        let ids = (0..<idsAtOnce).map { "batch \(generation) \($0)" }.shuffled(using: &generator)
            .prefix(Int.random(in: 2...3, using: &generator))
        let written = Set(ids.prefix(Int.random(in: 0...2, using: &generator)))
        var found: [String: Int] = [:]
        var operations: [String] = []
        for id in ids {
            guard let record = try connection.find(id) else { return }
            found[id] = record.item?.number ?? 0
            operations.append(written.contains(id) ? record.writing(number) : record.check)
        }
        history.state.withLock { $0.begin(BatchHistory.Batch(number, found: found, written: written)) }
        let outcome = try connection.atomicBatch(operations)
        history.state.withLock { $0.end(number, outcome) }
    }
}
