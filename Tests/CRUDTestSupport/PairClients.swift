import Synchronization

/// Clients of several daemons that change two records together, by atomic batches, and look by others whether both are
/// what they were read as: whenever they are, they hold the same.
package final class PairClients: Sendable {
    private static let ids = ["left", "right"]

    private let clients: ReconnectingClients
    private let looks: Looks

    /// Batches of checks that have held.
    private final class Looks: Sendable {
        let count = Atomic(0)
    }

    package init(of daemons: [RestartedDaemon]) throws {
        let looks = Looks()
        self.looks = looks
        clients = try ReconnectingClients(of: daemons) { number, generator, connection in
            if Bool.random(using: &generator) {
                let operations = Self.ids.map {
                    Connection.params("c", $0, item: Item(number: number).json, more: ["op": #""upsert""#])
                }
                _ = try connection.atomicBatch(operations)
            } else if try Self.look(connection) {
                looks.count.add(1, ordering: .relaxed)
            }
        }
    }

    /// Ends the clients.
    ///
    /// - Returns: what cannot have happened, and what was not expected.
    package func violations() -> [String] {
        clients.end() + (looks.count.load(ordering: .acquiring) == 0 ? ["no pair was looked at"] : [])
    }

    /// - Returns: whether both were still what they had been read as.
    private static func look(_ connection: Connection) throws -> Bool {
        let found = try ids.compactMap { try connection.find($0) }
        guard found.count == ids.count, try connection.atomicBatch(found.map(\.check)) == .applied else { return false }
        guard found[0].item == found[1].item else {
            throw Violation(description: "one atomic batch has left \(found.map(\.item))")
        }
        return true
    }
}
