#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time of a database: that of its creation, and what a clock of any kind says has passed since.
struct DatabaseClock: Sendable {
    /// In milliseconds since 1970-01-01 UTC.
    let now: @Sendable () -> Int
    private let sleep: @Sendable (_ end: Int) async throws -> Void

    init<Source: Clock<Duration>>(_ clock: Source) {
        let start = clock.now
        let origin = Int(Date().timeIntervalSince1970 * 1000)
        now = { origin + Int(start.duration(to: clock.now) / .milliseconds(1)) }
        sleep = { end in
            try await clock.sleep(until: start.advanced(by: .milliseconds(end - origin)), tolerance: nil)
        }
    }

    /// Waits until the time `end` or the deadline has come.
    func wait(until end: Int, deadline: ContinuousClock.Instant?) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { try await sleep(end) }
            if let deadline { group.addTask { try await Task.sleep(until: deadline, clock: .continuous) } }
            try await group.next()
            group.cancelAll()
        }
    }

    /// Waits until `event` has returned, which honours cancellation, or the time `end` or the deadline has come.
    func race(
        until end: Int, deadline: ContinuousClock.Instant?, _ event: @escaping @Sendable () async -> Void
    ) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { await event() }
            group.addTask { try await sleep(end) }
            if let deadline { group.addTask { try await Task.sleep(until: deadline, clock: .continuous) } }
            try await group.next()
            group.cancelAll()
        }
    }
}
