import CLinux
import CRUDPluginKit
import CRUDPluginThreads
import Glibc
import Synchronization

/// Finds the servers that can be written to, among those that the configuration names: all are asked at once, each by
/// a thread of its own, as names are looked up and passwords exchanged without regard to other hosts.
final class ServerSearch: Sendable {
    /// A connection that is not used yet.
    struct Candidate {
        let address: ServerAddress
        let connection: Connection
    }

    // The thread that has made the connection does not use it any more.
    private struct Reply: @unchecked Sendable {
        let outcome: Result<Connection, StorageFailure>

        func candidate(at address: ServerAddress) -> Candidate? {
            (try? outcome.get()).map { Candidate(address: address, connection: $0) }
        }
    }

    private struct State {
        /// Of the search in progress; nil: there is none, and connections that come late are closed.
        var replies: [ServerAddress: Reply]?
        /// The hosts that are being asked, which may be left from an earlier search.
        var asked: Set<ServerAddress> = []
    }

    private let settings: ConnectionSettings
    private let state = Mutex(State())
    /// Written to when a host has replied; an eventfd.
    private let news = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    private static let limitMilliseconds: Int64 = 3000
    /// How long is waited for other hosts as soon as one can be used.
    private static let graceMilliseconds: Int64 = 300

    init(_ settings: ConnectionSettings) {
        self.settings = settings
    }

    deinit {
        Glibc.close(news)
    }

    /// Asks all hosts.
    ///
    /// - Parameter preferred: which comes first where several can be used alike.
    /// - Returns: those that can be written to, the one on the highest timeline first.
    /// - Throws: `unavailable` where there is none, with what each host said; `unsupported` where none ever can be.
    func candidates(preferring preferred: ServerAddress?) throws(StorageFailure) -> [Candidate] {
        let addresses = settings.addresses()
        state.withLock { $0.replies = [:] }
        for address in addresses { ask(address) }
        let replies = awaitReplies(of: addresses)
        let found = addresses.compactMap { address in
            replies[address]?.candidate(at: address).flatMap { $0.connection.identity.isReadOnly ? nil : $0 }
        }
        guard !found.isEmpty else { throw Self.failure(of: addresses, replies) }
        func rank(_ candidate: Candidate) -> (Int64, Int) {
            (candidate.connection.identity.timeline, candidate.address == preferred ? 1 : 0)
        }
        // Stable: else in the order of the configuration.
        return found.enumerated().sorted { first, second in
            let (one, other) = (rank(first.element), rank(second.element))
            return one == other ? first.offset < second.offset : one > other
        }.map(\.element)
    }

    private func ask(_ address: ServerAddress) {
        guard state.withLock({ $0.asked.insert(address).inserted }) else { return }
        let isStarted = BackgroundThread.detach(named: "connect") { [self] in
            let outcome = Result { () throws(StorageFailure) in try Connection(settings, to: address) }
            note(outcome, of: address)
        }
        if !isStarted { note(.failure(StorageFailure(.unavailable, "the system has no thread")), of: address) }
    }

    private func note(_ outcome: Result<Connection, StorageFailure>, of address: ServerAddress) {
        let reply = Reply(outcome: outcome)
        state.withLock { state in
            state.asked.remove(address)
            state.replies?[address] = reply
        }
        eventfd_write(news, 1)
    }

    /// What the hosts have replied in time.
    private func awaitReplies(of addresses: [ServerAddress]) -> [ServerAddress: Reply] {
        var limit = Clock.monotonic + Self.limitMilliseconds * 1_000_000
        while true {
            let replies = state.withLock { $0.replies } ?? [:]
            let isFound = replies.contains { address, reply in
                reply.candidate(at: address).map { !$0.connection.identity.isReadOnly } ?? false
            }
            if isFound { limit = min(limit, Clock.monotonic + Self.graceMilliseconds * 1_000_000) }
            let left = (limit - Clock.monotonic) / 1_000_000
            if replies.count == Set(addresses).count || left <= 0 {
                return state.withLock { $0.replies.take() } ?? [:]
            }
            var interest = pollfd(fd: news, events: Int16(POLLIN), revents: 0)
            if poll(&interest, 1, Int32(left) + 1) > 0 {
                var count: UInt64 = 0
                eventfd_read(news, &count)
            }
        }
    }

    /// Why none of the hosts can be used.
    private static func failure(of addresses: [ServerAddress], _ replies: [ServerAddress: Reply]) -> StorageFailure {
        var reasons: [String] = []
        for address in addresses {
            switch replies[address]?.outcome {
            case .success: reasons.append("\(address): it is a standby, or read-only")
            case .failure(let failure) where failure.status == .unsupported: return failure
            case .failure(let failure): reasons.append("\(address): \(failure.message)")
            case nil: reasons.append("\(address): it does not reply")
            }
        }
        return StorageFailure(.unavailable, reasons.joined(separator: "; "))
    }
}
