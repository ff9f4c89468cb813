import CRUDPluginKit

/// Chooses the server that is used, of those that can be written to: the first that confirms a commit, on the highest
/// timeline. Used by one thread at a time.
final class ServerChoice {
    private let settings: ConnectionSettings
    private let host: Host
    private let search: ServerSearch
    /// Servers that were refused, each of which is logged once.
    private var refused: Set<String> = []

    init(_ settings: ConnectionSettings, _ host: Host) {
        self.settings = settings
        self.host = host
        search = ServerSearch(settings)
    }

    /// A server that has confirmed a commit.
    struct Choice {
        let address: ServerAddress
        let connection: Connection
        /// For the administrator, where it is not the server that was used before.
        let failOver: String?
        var server: (address: ServerAddress, identity: ServerIdentity) { (address, connection.identity) }
    }

    /// Chooses a server.
    ///
    /// - Parameters:
    ///   - cause: why one is needed, for the log.
    ///   - confirm: makes a commit on a connection, and throws where the server does not confirm it.
    /// - Throws: what the search or the best server has thrown, if there is none that can be used.
    func choose(
        because cause: String, _ confirm: (Connection) throws(StorageFailure) -> Void
    ) throws(StorageFailure) -> Choice {
        var last = LastServers[settings]
        // The first one says why: what follows are attempts that have failed.
        if last?.cause == nil { last?.cause = cause }
        LastServers[settings] = last
        var failure: StorageFailure?
        for candidate in try search.candidates(preferring: last?.address) {
            do throws(StorageFailure) {
                try check(candidate, last)
                try confirm(candidate.connection)
            } catch {
                if error.isFinal { throw error }
                candidate.connection.recover()
                failure = failure ?? StorageFailure(error.status, "\(candidate.address): \(error.message)")
                continue
            }
            return Choice(
                address: candidate.address, connection: candidate.connection, failOver: note(candidate, last))
        }
        throw failure ?? StorageFailure(.unavailable, "no server can be used")
    }

    /// Refuses a server that is not the one that was used, or is its past.
    private func check(_ candidate: ServerSearch.Candidate, _ last: LastServers.Server?) throws(StorageFailure) {
        let identity = candidate.connection.identity
        let reason: String
        if let seen = Timelines.above(identity) {
            reason = "it is on timeline \(identity.timeline), and timeline \(seen) has been seen"
        } else if let last, last.identity.system != identity.system {
            reason = "it is another database cluster: its system identifier is \(identity.system)"
        } else {
            return
        }
        if refused.insert("\(candidate.address): \(reason)").inserted {
            host.log(.error, "server \(candidate.address) is refused: \(reason)")
        }
        throw StorageFailure(.unavailable, "refused: \(reason)")
    }

    /// Notes and logs which server is used from now on.
    ///
    /// - Returns: the line of a fail-over.
    private func note(_ candidate: ServerSearch.Candidate, _ last: LastServers.Server?) -> String? {
        let identity = candidate.connection.identity
        Timelines.note(identity)
        LastServers[settings] = LastServers.Server(address: candidate.address, identity: identity)
        let server = identity.description(at: candidate.address)
        guard let last, let cause = last.cause else {
            host.log(.info, "connected to server \(server)")
            return nil
        }
        if last.identity.timeline != identity.timeline || last.address != candidate.address {
            let line = "fail-over to server \(server) from \(last.identity.description(at: last.address)): \(cause)"
            host.log(.warning, line)
            return line
        }
        if last.identity.startTime != identity.startTime {
            host.log(.warning, "server \(server) has been restarted: \(cause)")
        } else {
            host.log(.info, "connected to server \(server) again: \(cause)")
        }
        return nil
    }
}

extension StorageFailure {
    /// No later attempt can succeed.
    fileprivate var isFinal: Bool { status == .unsupported || status == .invalidOptions }
}
