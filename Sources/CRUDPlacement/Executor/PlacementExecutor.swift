import CRUDModel
import CRUDStorage
package import CRUDThreads
import Synchronization

/// Executes changes of placements on a thread of its own, one after another in the order in which they were requested:
/// the one way in which it changes from where a collection is served. (A collection's first record is the exception,
/// ``Catalog/admit(_:at:isNew:by:in:)``, which makes an absent collection resident where it is served already.)
package final class PlacementExecutor: Sendable {
    package typealias Job = @Sendable () -> Void

    private struct State {
        var jobs: [(key: String?, job: Job)] = []
        var isEnding = false
        /// Set while the thread has nothing to do: what it waits for.
        var idle: OneShot<Bool>?
    }

    private let state = Mutex(State())
    private let ended = OneShot<Bool>()

    /// How often is looked for what waits for time to pass.
    private static let tick = Duration.milliseconds(250)

    package init() {}

    /// Executes a job; callable on any thread, also before the start.
    ///
    /// - Parameter key: jobs with the same one that have not begun count as one.
    package func enqueue(_ key: String? = nil, _ job: @escaping Job) {
        let idle = state.withLock { state in
            if key == nil || !state.jobs.contains(where: { $0.key == key }) { state.jobs.append((key, job)) }
            return state.idle.take()
        }
        idle?.resolve(true)
    }

    /// - Parameter tick: called on the thread, after each job; returns whether it is to be called again soon, as
    ///   something waits for time to pass.
    package func start(tick: @escaping @Sendable () -> Bool) throws(ThreadFailure) {
        _ = try Thread(named: "placement") { [self] in
            while let job = next(tick) { job() }
            ended.resolve(true)
        }
    }

    /// Begins no job any more, and waits for the one in progress.
    ///
    /// - Returns: false if that takes too long.
    package func finish(within timeout: Duration) -> Bool {
        let idle = state.withLock { state in
            state.isEnding = true
            return state.idle.take()
        }
        idle?.resolve(true)
        return ended.wait(atMost: timeout) != nil
    }

    /// The next job, once there is one; nil at the end.
    private func next(_ tick: () -> Bool) -> Job? {
        while true {
            let mustTick = tick()
            let idle = OneShot<Bool>()
            let job: Job?? = state.withLock { state in
                if state.isEnding { return .some(nil) }
                if !state.jobs.isEmpty { return state.jobs.removeFirst().job }
                state.idle = idle
                return nil
            }
            if let job { return job }
            if mustTick { _ = idle.wait(atMost: Self.tick) } else { _ = idle.wait() }
        }
    }

    // MARK: Changes

    /// Executes a change, on the thread.
    ///
    /// - Parameter planning: held from the plan to its record.
    /// - Throws: why nothing has changed; or `outcome_unknown`, where what the change concerns stays closed until it is
    ///   certain that nothing has.
    static func execute(
        _ change: some PlacementChange, _ catalog: Catalog, _ loops: any ServingLoops, planning: borrowing Mutex<Void>
    ) throws(CRUDError) {
        do throws(CRUDError) {
            try quiesce(change, loops)
        } catch {
            change.serve(loops)
            throw error
        }
        do throws(CRUDError) {
            try planning.withLock { _ throws(CRUDError) in try record(change, catalog) }
        } catch {
            change.undo()
            change.serve(loops)
            throw error
        }
        change.committed()
        change.serve(loops)
    }

    /// Plans a change, and makes it by one record.
    private static func record(_ change: some PlacementChange, _ catalog: Catalog) throws(CRUDError) {
        try change.prepare()
        let transitions = try change.transitions(catalog)
        do throws(CatalogError) {
            try catalog.commit(transitions, storages: change.storages)
        } catch {
            throw error.error
        }
    }

    /// Has the scope wait, and what is in flight end.
    private static func quiesce(_ change: some PlacementChange, _ loops: any ServingLoops) throws(CRUDError) {
        guard let scope = change.scope else { return }
        let deadline = ContinuousClock.now + change.timeout
        guard let backends = loops.quiesce(scope, within: change.timeout) else {
            throw CRUDError(.unavailable, "a child process does not finish its reads")
        }
        for backend in backends {
            guard backend.drain(within: deadline - .now) else {
                throw CRUDError(.unavailable, "backend \(backend.name) does not finish its requests in flight")
            }
        }
    }
}
