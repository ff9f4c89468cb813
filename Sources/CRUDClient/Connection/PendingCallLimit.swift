import CRUDModel
import NIOCore
import Synchronization

/// Bounds how many calls of a client are pending: a call that exceeds the limit waits until another one has ended,
/// before anything is encoded for it.
///
/// Calls that wait are admitted in their order. One that is cancelled, or whose deadline passes, waits no longer.
final class PendingCallLimit: Sendable {
    fileprivate struct Waiter {
        let method: RemoteMethod
        let deadline: NIODeadline
        let continuation: CheckedContinuation<Void, any Error>
    }

    fileprivate struct State {
        var free: Int
        var waiters: [Int: Waiter] = [:]
        /// The tickets of the waiters in their order, from `first` on; those that do not wait any more included.
        var order: [Int] = []
        var first = 0
        var lastTicket = 0
        /// Whether no more calls are admitted.
        var isClosed = false
        /// Those who wait until no call is pending.
        var drains: [Int: CheckedContinuation<Void, Never>] = [:]
        /// When the earliest deadline is looked at; far in the future if there is none.
        var alarm = NIODeadline.distantFuture
    }

    /// How often deadlines are looked at, at most: there may be one for each of very many waiters.
    private static let alarmInterval = TimeAmount.milliseconds(10)

    private let maximum: Int
    private let eventLoop: any EventLoop
    private let state: Mutex<State>

    /// - Parameters:
    ///   - maximum: how many calls may be pending.
    ///   - eventLoop: wakes those whose deadline has passed.
    init(maximum: Int, eventLoop: any EventLoop) {
        self.maximum = max(1, maximum)
        self.eventLoop = eventLoop
        state = Mutex(State(free: max(1, maximum)))
    }

    /// Admits a call, which ends with ``leave()``.
    ///
    /// - Throws: `timed_out` at the deadline, `CancellationError`, `unavailable` after ``drain()``.
    func enter(_ method: RemoteMethod, deadline: NIODeadline) async throws {
        let (isClosed, isAdmitted) = state.withLock { ($0.isClosed, !$0.isClosed && $0.take()) }
        if isClosed { throw CRUDError.closed() }
        if isAdmitted { return }
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                add(Waiter(method: method, deadline: deadline, continuation: continuation), ticket)
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: ticket) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    /// A call that was admitted has ended.
    func leave() {
        let (waiter, drains) = state.withLock { state in
            let waiter = state.release()
            return (waiter, state.free == maximum ? state.takeDrains() : [])
        }
        waiter?.continuation.resume()
        for drain in drains { drain.resume() }
    }

    /// Admits no more calls, and waits until all that have asked before have ended, or until the task is cancelled.
    func drain() async {
        let ticket = state.withLock { state in
            state.isClosed = true
            state.lastTicket += 1
            return state.lastTicket
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    // If the task was cancelled before, the handler has found nothing.
                    if state.free == maximum || Task.isCancelled { return true }
                    state.drains[ticket] = continuation
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.drains.removeValue(forKey: ticket) }?.resume()
        }
    }

    private func add(_ waiter: Waiter, _ ticket: Int) {
        let (outcome, alarm) = state.withLock { state -> (Result<Void, any Error>?, NIODeadline?) in
            // If the task was cancelled before, the handler has found no waiter.
            if Task.isCancelled { return (.failure(CancellationError()), nil) }
            if state.take() { return (.success(()), nil) }
            state.waiters[ticket] = waiter
            state.order.append(ticket)
            guard waiter.deadline < state.alarm else { return (nil, nil) }
            state.alarm = waiter.deadline
            return (nil, waiter.deadline)
        }
        if let outcome { waiter.continuation.resume(with: outcome) }
        if let alarm { wake(at: alarm) }
    }

    private func wake(at time: NIODeadline) {
        eventLoop.scheduleTask(deadline: time) { [weak self] in self?.expire() }
    }

    /// Ends the wait of those whose deadline has passed.
    private func expire() {
        let now = NIODeadline.now()
        let (overdue, alarm) = state.withLock { state -> ([Waiter], NIODeadline?) in
            let overdue = state.waiters.filter { $0.value.deadline <= now }
            for ticket in overdue.keys { state.waiters[ticket] = nil }
            let earliest = state.waiters.values.map(\.deadline).min().map { max($0, now + Self.alarmInterval) }
            state.alarm = earliest ?? .distantFuture
            return (Array(overdue.values), earliest)
        }
        for waiter in overdue {
            waiter.continuation.resume(throwing: CRUDError.neverAdmitted(waiter.method, maximum: maximum))
        }
        if let alarm { wake(at: alarm) }
    }
}

extension PendingCallLimit.State {
    fileprivate mutating func takeDrains() -> [CheckedContinuation<Void, Never>] {
        defer { drains = [:] }
        return Array(drains.values)
    }

    /// Takes what one call needs; false if it has to wait.
    fileprivate mutating func take() -> Bool {
        guard free > 0 else { return false }
        free -= 1
        return true
    }

    /// Returns what a call has taken, and the waiter that gets it, if there is one.
    fileprivate mutating func release() -> PendingCallLimit.Waiter? {
        while first < order.count {
            let ticket = order[first]
            first += 1
            if first > 1024, first * 2 > order.count {
                order.removeFirst(first)
                first = 0
            }
            if let waiter = waiters.removeValue(forKey: ticket) { return waiter }
        }
        order.removeAll()
        first = 0
        free += 1
        return nil
    }
}
