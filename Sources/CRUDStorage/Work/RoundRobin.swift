import CRUDModel

/// The sliced tasks of a thread, which get one slice each in turn.
struct RoundRobin<Task: SlicedTask> {
    private var tasks: [Task] = []

    var count: Int { tasks.count }
    var isEmpty: Bool { tasks.isEmpty }

    func contains(where isWanted: (Task) -> Bool) -> Bool { tasks.contains(where: isWanted) }

    /// Until when there is nothing to do; nil: until another task comes.
    var timeout: Duration? {
        if tasks.isEmpty { return nil }
        return tasks.contains { !$0.isWaiting } ? .zero : Self.waitingTime
    }

    /// How long nothing is done while all tasks wait.
    private static var waitingTime: Duration { .milliseconds(1) }

    /// Adds a task that has been claimed.
    mutating func append(_ task: Task) { tasks.append(task) }

    /// Executes a slice of the next task that does not wait.
    ///
    /// - Parameter slice: executes it; returns whether the task is done, which is then delivered.
    mutating func advance(_ slice: (Task) -> Bool) {
        guard let next = tasks.firstIndex(where: { !$0.isWaiting }) else { return }
        let task = tasks.remove(at: next)
        if slice(task) { end(task) } else { tasks.append(task) }
    }

    /// The storage is no more available: delivers the tasks as they are.
    mutating func end() {
        for task in tasks {
            task.fail(CRUDError(.unavailable, "the backend is not available any more"))
            end(task)
        }
        tasks.removeAll()
    }

    private func end(_ task: Task) {
        task.abandon()
        task.end()
        task.finish()
    }
}
