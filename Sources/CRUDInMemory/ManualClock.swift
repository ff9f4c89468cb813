import Synchronization

/// A clock that stands still until a test advances it.
///
/// ```swift
/// let clock = ManualClock()
/// let sessions = InMemoryRepository(clock: clock)
/// try await sessions.create(id: "token", item: "ada", expiresIn: .seconds(60))
/// clock.advance(by: .seconds(60))
/// #expect(try await sessions.exists(id: "token") == false)
/// ```
public final class ManualClock: Clock, Sendable {
    /// A time since the creation of the clock.
    public struct Instant: InstantProtocol {
        fileprivate var offset: Duration

        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant(offset: .zero)
        var sleepers: [Int: (end: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var lastSleeper = 0
    }

    private let state = Mutex(State())

    public init() {}

    public var now: Instant { state.withLock { $0.now } }
    public var minimumResolution: Duration { .zero }

    /// Moves the time on, and wakes those who slept until then.
    public func advance(by duration: Duration) {
        let awakened = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let awakened = state.sleepers.filter { $0.value.end <= state.now }
            for id in awakened.keys { state.sleepers[id] = nil }
            return awakened.values.map(\.continuation)
        }
        for continuation in awakened { continuation.resume() }
    }

    public func sleep(until end: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    // If the task was cancelled before, the handler has found no sleeper.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if end <= state.now { return .success(()) }
                    state.sleepers[id] = (end, continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
