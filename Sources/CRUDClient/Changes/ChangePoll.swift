import CRUDModel

/// How those who follow a collection ask for its changes.
enum ChangePoll {
    /// How long a store holds back its reply while nothing changes.
    private static let wait = Duration.seconds(15)

    /// The next page, retried while the store is unavailable, or has no room for another one that waits.
    static func page(of store: any RecordStore, _ query: ChangeQuery) async throws -> ChangePage {
        var query = query
        // A `now` that waited and was sent again, after a lost connection, would be a later one.
        query.wait = query.after.text == Cursor.now.text ? .zero : wait
        var failures = 0
        while true {
            do {
                return try await store.changes(query)
            } catch let error as CRUDError where isTransient(error) {
                if let deadline = CRUDClient.deadline, deadline <= .now { throw error }
                // Random, lest all followers of a daemon that has restarted come back at the same moment.
                let longest = Duration.milliseconds(10 << min(failures, 8))
                let end = ContinuousClock.now + longest * Double.random(in: 0.5...1)
                try await Task.sleep(until: min(end, CRUDClient.deadline ?? end), clock: .continuous)
                failures += 1
            }
        }
    }

    private static func isTransient(_ error: CRUDError) -> Bool {
        switch error.code {
        case .unavailable: !(error.cause is ClientClosed)
        case .timedOut: true
        case .limitExceeded: ["followers_per_session", "session_bytes"].contains(error.details.limit)
        default: false
        }
    }
}
