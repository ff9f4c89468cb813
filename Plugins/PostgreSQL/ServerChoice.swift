import CRUDPluginKit

/// Chooses the server that is used, of those that can be written to: the first that confirms a commit, on the highest
/// timeline. Used by one thread at a time.
final class ServerChoice {
    private let host: Host
    private let search: ServerSearch
    /// The one chosen last.
    private var last: (address: ServerAddress, identity: ServerIdentity)?
    /// Servers that were refused, each of which is logged once.
    private var refused: Set<String> = []

    init(_ settings: ConnectionSettings, _ host: Host) {
        self.host = host
        search = ServerSearch(settings)
    }

    /// A server that has confirmed a commit.
    struct Choice {
        let address: ServerAddress
        let connection: Connection
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
        var failure: StorageFailure?
        for candidate in try search.candidates(preferring: last?.address) {
            do throws(StorageFailure) {
                try check(candidate)
                try confirm(candidate.connection)
            } catch {
                if error.isFinal { throw error }
                candidate.connection.recover()
                failure = failure ?? StorageFailure(error.status, "\(candidate.address): \(error.message)")
                continue
            }
            note(candidate, because: cause)
            return Choice(address: candidate.address, connection: candidate.connection)
        }
        throw failure ?? StorageFailure(.unavailable, "no server can be used")
    }

    /// Refuses a server that is not the one that was used, or is its past.
    private func check(_ candidate: ServerSearch.Candidate) throws(StorageFailure) {
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

    private func note(_ candidate: ServerSearch.Candidate, because cause: String) {
        let identity = candidate.connection.identity
        Timelines.note(identity)
        defer { last = (candidate.address, identity) }
        guard let last else { return }
        let timeline = identity.timeline == 0 ? "" : " (timeline \(identity.timeline))"
        if last.identity.timeline != identity.timeline || last.address != candidate.address {
            let old = last.identity.timeline == 0 ? "" : " (timeline \(last.identity.timeline))"
            host.log(
                .warning, "fail-over to server \(candidate.address)\(timeline) from \(last.address)\(old): \(cause)")
        } else if last.identity.startTime != identity.startTime {
            host.log(.warning, "server \(candidate.address)\(timeline) has been restarted: \(cause)")
        } else {
            host.log(.info, "connected to server \(candidate.address)\(timeline) again: \(cause)")
        }
    }
}

extension StorageFailure {
    /// No later attempt can succeed.
    fileprivate var isFinal: Bool { status == .unsupported || status == .invalidOptions }
}
