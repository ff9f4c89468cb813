import CRUDModel
import CRUDThreads
import Logging
import Synchronization

/// Executes what is to be done in one backend for placements, on one thread, which there is while there is anything: a
/// step of each act in turn. So a removal and a copy never meet in one place, and a backend that hangs delays only what
/// is to be done in it.
final class PlacementWorker: Sendable {
    private let backend: String
    /// It lives as long as the daemon.
    private let control: PlacementControl
    private let state = Mutex(State())

    fileprivate struct Item {
        let task: ActTask
        /// When its next step is due, on the clock of `MonotonicTime`; nil: never.
        var due: Duration?
    }

    fileprivate struct State {
        var items: [Item] = []
        var hasThread = false
        /// Set while the thread waits.
        var idle: OneShot<Bool>?
    }

    init(_ backend: String, _ control: PlacementControl) {
        self.backend = backend
        self.control = control
    }

    var tasks: [ActTask] { state.withLock { $0.items.map(\.task) } }

    /// Follows the placement of a collection.
    ///
    /// - Parameters:
    ///   - acts: that are to be executed here.
    ///   - retriesFailed: whether those that have failed begin again.
    func follow(_ name: [UInt8], _ acts: [Placement.Act], retriesFailed: Bool) {
        state.withLock { state in
            state.items.removeAll { item in
                item.task.name == name && (!acts.contains(item.task.act) || retriesFailed && item.due == nil)
            }
            for act in acts where !state.items.contains(where: { $0.task.name == name && $0.task.act == act }) {
                state.items.append(Item(task: ActTask(name, act), due: MonotonicTime.now))
            }
        }
        wake()
    }

    /// Ends after the step in progress.
    func stop() {
        state.withLock { $0.items.removeAll() }
        wake()
    }

    private func wake() {
        let (idle, needsThread) = state.withLock { state in
            let needsThread = !state.hasThread && !state.items.isEmpty
            if needsThread { state.hasThread = true }
            return (state.idle.take(), needsThread)
        }
        idle?.resolve(true)
        guard needsThread else { return }
        do throws(ThreadFailure) {
            _ = try Thread(named: "p:\(backend)") { [self] in run() }
        } catch {
            state.withLock { $0.hasThread = false }
            control.logger.critical("the system has no thread for backend \(backend)'s moves (errno \(error.code))")
        }
    }

    // MARK: The thread

    private func run() {
        while true {
            let idle = OneShot<Bool>()
            switch state.withLock({ $0.next(or: idle) }) {
            case .step(let task): end(task.advance(control), of: task)
            case .wait(let time?): _ = idle.wait(atMost: time)
            case .wait(nil): _ = idle.wait()
            case .end: return
            }
        }
    }

    private func end(_ next: ActTask.Next, of task: ActTask) {
        state.withLock { state in
            guard let index = state.items.firstIndex(where: { $0.task === task }) else { return }
            state.items.remove(at: index)
            switch next {
            case .step(let pause): state.items.append(Item(task: task, due: MonotonicTime.now + pause))
            case .nothing: state.items.append(Item(task: task, due: nil))
            case .done: break
            }
        }
        // What follows from it may be to be done elsewhere.
        if case .done = next { control.follow(task.name) }
    }
}

extension PlacementWorker.State {
    fileprivate enum Action {
        case step(ActTask)
        /// nil: until there is something to do.
        case wait(Duration?)
        case end
    }

    /// What the thread does next; it is woken by `idle` where that is to wait.
    fileprivate mutating func next(or idle: OneShot<Bool>) -> Action {
        guard !items.isEmpty else {
            hasThread = false
            return .end
        }
        let now = MonotonicTime.now
        // Those that have waited longest are in front.
        if let item = items.first(where: { $0.due.map { $0 <= now } ?? false }) {
            return .step(item.task)
        }
        self.idle = idle
        return .wait(items.compactMap(\.due).min().map { $0 - now })
    }
}
