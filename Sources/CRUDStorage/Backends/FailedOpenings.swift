import CRUDModel

/// Collections that could not be opened or created a moment ago. For a growing pause that is not tried again: requests
/// that wait for the same collection would fail alike, each after as long.
struct FailedOpenings {
    private struct Entry {
        var error: CRUDError
        var until: Duration
        var pause: Duration
    }

    private var entries: [BackendCollection.Key: Entry] = [:]

    static let firstPause = Duration.milliseconds(100)
    static let longestPause = Duration.seconds(1)
    private static let maximumCount = 1000

    /// Why a collection is not to be opened now; nil: it may be tried.
    func error(for key: BackendCollection.Key, at now: Duration) -> CRUDError? {
        guard !entries.isEmpty, let entry = entries[key], now < entry.until else { return nil }
        return entry.error
    }

    /// Notes that an attempt has failed.
    mutating func note(_ error: CRUDError, for key: BackendCollection.Key, at now: Duration) {
        let pause = entries[key].map { min($0.pause * 2, Self.longestPause) } ?? Self.firstPause
        if entries.count >= Self.maximumCount { entries.removeAll() }
        entries[key] = Entry(error: error, until: now + pause, pause: pause)
    }

    /// Notes that an attempt has succeeded.
    mutating func forget(_ key: BackendCollection.Key) {
        if !entries.isEmpty { entries[key] = nil }
    }
}
