import CRUDQuery
import CRUDThreads
import Glibc
import Synchronization

/// Threads for what takes long with one record: one for each job, with a low priority.
///
/// As many of them run at a time as there are processors. A job may take seconds, and others milliseconds: so they take
/// turns.
package final class LongRecordThreads: LongRecordExecutor {
    /// Those on which searches of this process decide about long records.
    package static let searching = LongRecordThreads(running: processors)
    /// Those that make the long items of writes, which searches do not keep waiting.
    package static let writing = LongRecordThreads(running: processors)

    private static var processors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    private struct State {
        /// How many jobs there are.
        var threads = 0
        /// How many of them run.
        var running = 0
        /// Those that wait for their turns, the first one first.
        var waiting: [OneShot<Void>] = []
    }

    private let state = Mutex(State())
    private let maximumRunning: Int

    /// The most jobs at a time.
    private static let maximumThreads = 64
    /// How long a turn is while others wait.
    private static let turn = Duration.milliseconds(10)
    /// What is added to the nice value: a thread of the daemon has ten times as much of a processor for which both
    /// compete.
    private static let niceness: Int32 = 10

    /// - Parameter running: how many threads may run at a time.
    package init(running: Int) {
        maximumRunning = running
    }

    package func execute(_ job: @escaping @Sendable (_ yield: @escaping () -> Void) -> Void) -> Bool {
        let isFree = state.withLock { state in
            guard state.threads < Self.maximumThreads else { return false }
            state.threads += 1
            return true
        }
        guard isFree else { return false }
        do throws(ThreadFailure) {
            try Thread(named: "record") { [self] in run(job) }.detach()
            return true
        } catch {
            state.withLock { $0.threads -= 1 }
            return false
        }
    }

    private func run(_ job: (_ yield: @escaping () -> Void) -> Void) {
        Thread.lowerPriority(by: Self.niceness)
        beginTurn()
        var end = MonotonicTime.now + Self.turn
        job { [self] in
            guard MonotonicTime.now >= end else { return }
            if hasWaiting {
                endTurn()
                beginTurn()
            }
            end = MonotonicTime.now + Self.turn
        }
        endTurn()
        state.withLock { $0.threads -= 1 }
    }

    private var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

    private func beginTurn() {
        let turn = state.withLock { state -> OneShot<Void>? in
            guard state.running == maximumRunning else {
                state.running += 1
                return nil
            }
            let turn = OneShot<Void>()
            state.waiting.append(turn)
            return turn
        }
        turn?.wait()
    }

    private func endTurn() {
        let next = state.withLock { state -> OneShot<Void>? in
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resolve(())
    }
}
