import CRUDPluginKit
import Glibc

/// When a transaction that has lost against another one is tried again: at once, and then after pauses that grow, and
/// differ between daemons, until the deadline of its request.
struct ConflictRetries {
    private let limit: Int64
    private var attempts = 0

    private static let longestSeconds: Int64 = 10
    private static let longestPauseMilliseconds = 16

    /// - Parameter deadline: of ``Clock/monotonic``; nil: none.
    init(until deadline: Int64?) {
        limit = min(deadline ?? .max, Clock.monotonic + Self.longestSeconds * 1_000_000_000)
    }

    /// Waits until the next attempt; false if there is to be none.
    mutating func pause() -> Bool {
        guard Clock.monotonic < limit else { return false }
        attempts += 1
        if attempts > 2 {
            let longest = min(1 << min(attempts - 2, 8), Self.longestPauseMilliseconds)
            poll(nil, 0, .random(in: 0...Int32(longest)))
        }
        return true
    }
}
