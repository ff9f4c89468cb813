import Dispatch
import Synchronization

/// Runs a task, and all that it awaits, on the main thread.
///
/// The default executor would start threads of libdispatch. Each of them tries to set its priority, and where the user
/// or a systemd unit is not allowed to, libdispatch writes a line to the system's log.
final class MainThreadExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])
    private let count = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        count.signal()
    }

    /// Runs `body`, which ends the process.
    func run(_ body: @escaping @Sendable () async -> Never) -> Never {
        Task(executorPreference: self) { await body() }
        while true {
            count.wait()
            let job = jobs.withLock { $0.removeFirst() }
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
