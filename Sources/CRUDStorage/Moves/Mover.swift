import CRUDModel
import CRUDThreads
package import Logging
import Synchronization

/// Executes the moves that the catalog knows, on one thread, which there is while there are moves: a step of each in
/// turns, so that one that is suspended keeps nobody waiting.
package final class Mover: Sendable {
    private let catalog: CollectionCatalog
    private let logger: Logger
    private let requestSwitch: @Sendable (SwitchRequest) -> Void
    private let state = Mutex(State())

    fileprivate struct Task {
        let move: Move
        /// When its next step is due, on the clock of ``MonotonicTime``; nil: never.
        var due: Duration?
    }

    fileprivate struct State {
        var tasks: [Task] = []
        /// The move that a step is being made of, and who waits for the end of that.
        var current: Move?
        var stepEnds: [OneShot<Bool>] = []
        var hasThread = false
        /// Set while the thread waits.
        var idle: OneShot<Bool>?
    }

    /// How long a step that has begun is waited for. What it has begun in a backend comes before what is asked for
    /// later.
    private static let stopTimeout = Duration.seconds(15)

    /// - Parameter requestSwitch: has the event loops quiesced and ``Move/switchOver()`` called, on another thread.
    package init(
        _ catalog: CollectionCatalog, logger: Logger, requestSwitch: @escaping @Sendable (SwitchRequest) -> Void
    ) {
        self.catalog = catalog
        self.logger = logger
        self.requestSwitch = requestSwitch
    }

    /// Those that are not over, by the names of their collections.
    package var progress: [Move.Progress] {
        state.withLock { $0.tasks.map(\.move) }.map(\.progress)
            .sorted { $0.collection.lexicographicallyPrecedes($1.collection) }
    }

    package func progress(of collection: [UInt8]) -> Move.Progress? {
        state.withLock { $0.tasks.first { $0.move.name == collection }?.move }?.progress
    }

    // MARK: Following the catalog

    /// Continues the moves of the catalog with these backends, begins those that are new, and stops those that are not
    /// there any more.
    ///
    /// - Parameter retriesFailed: whether those that have failed begin again.
    package func follow(_ backends: [Backend], retriesFailed: Bool = false) {
        let wanted = catalog.entries.compactMap { entry in
            entry.move.map { move in
                Move(
                    entry, to: move.destination, backends: backends, catalog, logger, requestSwitch: requestSwitch)
            }
        }
        stop { move in
            let isFailed = move.progress.phase == .failed && retriesFailed
            return isFailed || !wanted.contains { $0.isLike(move) }
        }
        state.withLock { state in
            for move in wanted where !state.tasks.contains(where: { $0.move.name == move.name }) {
                state.tasks.append(Task(move: move, due: MonotonicTime.now))
            }
        }
        wake()
    }

    /// Stops moves, and waits until nothing is being done for them. What is to become of them is in the catalog.
    package func stop(where isToStop: (Move) -> Bool = { _ in true }) {
        var stopped: [Move] = []
        let stepEnd = OneShot<Bool>()
        let current: Move? = state.withLock { state in
            stopped = state.tasks.map(\.move).filter(isToStop)
            state.tasks.removeAll { task in stopped.contains { $0 === task.move } }
            guard let current = state.current, stopped.contains(where: { $0 === current }) else { return nil }
            state.stepEnds.append(stepEnd)
            return current
        }
        for move in stopped { move.stop() }
        if let current, stepEnd.wait(atMost: Self.stopTimeout) == nil {
            logger.error("\(current.title) does not stop in time")
        }
    }

    // MARK: The thread

    private func wake() {
        let (idle, needsThread) = state.withLock { state in
            let needsThread = !state.hasThread && !state.tasks.isEmpty
            if needsThread { state.hasThread = true }
            return (state.idle.take(), needsThread)
        }
        idle?.resolve(true)
        guard needsThread else { return }
        do throws(ThreadFailure) {
            _ = try Thread(named: "moves") { [self] in run() }
        } catch {
            state.withLock { $0.hasThread = false }
            logger.critical("the system has no thread for moves (errno \(error.code))")
        }
    }

    private func run() {
        while true {
            let idle = OneShot<Bool>()
            switch state.withLock({ $0.next(or: idle) }) {
            case .step(let move): end(move.advance(), of: move)
            case .wait(let time?): _ = idle.wait(atMost: time)
            case .wait(nil): _ = idle.wait()
            case .end: return
            }
        }
    }

    private func end(_ next: Move.Next, of move: Move) {
        let stepEnds = state.withLock { state in
            defer { state.stepEnds.removeAll() }
            state.current = nil
            if let index = state.tasks.firstIndex(where: { $0.move === move }) {
                let task = state.tasks.remove(at: index)
                switch next {
                case .step(let pause):
                    state.tasks.append(Task(move: task.move, due: MonotonicTime.now + pause))
                case .nothing: state.tasks.append(Task(move: task.move, due: nil))
                case .end: break
                }
            }
            return state.stepEnds
        }
        for stepEnd in stepEnds { stepEnd.resolve(true) }
    }
}

extension Mover.State {
    fileprivate enum Action {
        case step(Move)
        /// nil: until there is something to do.
        case wait(Duration?)
        case end
    }

    /// What the thread does next; it is woken by `idle` where that is to wait.
    fileprivate mutating func next(or idle: OneShot<Bool>) -> Action {
        guard !tasks.isEmpty else {
            hasThread = false
            return .end
        }
        let now = MonotonicTime.now
        // Those that have waited longest are in front.
        if let task = tasks.first(where: { $0.due.map { $0 <= now } ?? false }) {
            current = task.move
            return .step(task.move)
        }
        self.idle = idle
        return .wait(tasks.compactMap(\.due).min().map { $0 - now })
    }
}

extension Move {
    /// Whether another move is the same, with the same backends.
    fileprivate func isLike(_ other: Move) -> Bool {
        name == other.name && from == other.from && to == other.to && source === other.source
            && target === other.target
    }
}
