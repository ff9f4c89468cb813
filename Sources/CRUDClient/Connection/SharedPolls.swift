import CRUDModel
import Synchronization

/// The requests of a client that wait for changes: tasks that ask for the same at the same time share one of them.
///
/// Who follows a collection from one cursor on, as the viewers of one page do who have got the same page of changes,
/// occupies the daemon once, however many they are. A task that is cancelled leaves its request to the others; with the
/// last one it is withdrawn.
final class SharedPolls: Sendable {
    fileprivate struct Poll {
        /// Tells this one from an earlier one with the same request.
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [Int: CheckedContinuation<ChangePage, any Error>] = [:]
    }

    fileprivate struct State {
        /// By the text of the request's parameters.
        var polls: [[UInt8]: Poll] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())

    /// Waits for the page that a request gets.
    ///
    /// - Parameters:
    ///   - params: tells the requests apart.
    ///   - request: makes the request, if no other task waits for it.
    func page(
        of params: [UInt8], _ request: @escaping @Sendable () async throws -> ChangePage
    ) async throws -> ChangePage {
        let waiter = state.withLock { $0.nextNumber() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let started = state.withLock { state -> Int?? in
                    // If the task was cancelled before, the handler has found no waiter.
                    if Task.isCancelled { return nil }
                    let isNew = state.polls[params] == nil
                    let number = state.nextNumber()
                    state.polls[params, default: Poll(number: number)].waiters[waiter] = continuation
                    return .some(isNew ? number : nil)
                }
                guard let started else { return continuation.resume(throwing: CancellationError()) }
                if let number = started { start(number, params, request) }
            }
        } onCancel: {
            cancel(waiter, params)
        }
    }

    private func start(
        _ number: Int, _ params: [UInt8], _ request: @escaping @Sendable () async throws -> ChangePage
    ) {
        let task = Task {
            let result: Result<ChangePage, any Error>
            do { result = .success(try await request()) } catch { result = .failure(error) }
            let waiters = state.withLock { state -> [CheckedContinuation<ChangePage, any Error>] in
                guard let poll = state.polls[params], poll.number == number else { return [] }
                state.polls[params] = nil
                return Array(poll.waiters.values)
            }
            for waiter in waiters { waiter.resume(with: result) }
        }
        // It may have ended, or have lost its last waiter, before.
        let isAwaited = state.withLock { state in
            guard state.polls[params]?.number == number else { return false }
            state.polls[params]?.task = task
            return true
        }
        if !isAwaited { task.cancel() }
    }

    private func cancel(_ waiter: Int, _ params: [UInt8]) {
        let continuation = state.withLock { $0.polls[params]?.waiters.removeValue(forKey: waiter) }
        continuation?.resume(throwing: CancellationError())
        let abandoned = state.withLock { state -> Poll? in
            guard state.polls[params]?.waiters.isEmpty == true else { return nil }
            return state.polls.removeValue(forKey: params)
        }
        abandoned?.task?.cancel()
    }
}

extension SharedPolls.State {
    fileprivate mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }
}
