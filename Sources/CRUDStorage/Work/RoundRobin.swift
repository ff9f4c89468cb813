import CRUDModel

/// The sliced tasks of a thread, which get one slice each in turn.
struct RoundRobin<Task: SlicedTask> {
    private var tasks: [Task] = []

    var count: Int { tasks.count }
    var isEmpty: Bool { tasks.isEmpty }

    func contains(where isWanted: (Task) -> Bool) -> Bool { tasks.contains(where: isWanted) }

    /// Adds a task that has been claimed.
    mutating func append(_ task: Task) { tasks.append(task) }

    /// Executes a slice of the next task.
    ///
    /// - Parameter slice: executes it; returns whether the task is done, which is then delivered.
    mutating func advance(_ slice: (Task) -> Bool) {
        guard !tasks.isEmpty else { return }
        let task = tasks.removeFirst()
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
        task.end()
        task.finish()
    }
}
