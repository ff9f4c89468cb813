import CRUDThreads
import Synchronization

/// The work of one thread that reads, and how much of it is not done.
final class ReadQueue: Sendable {
    private let queue = WorkQueue<ReadWork>()
    private let outstanding = Atomic<Int>(0)

    /// How many items wait here or are in progress.
    var load: Int { outstanding.load(ordering: .relaxed) }

    /// Appends work; returns false where the queue is closed.
    func append(_ work: ReadWork) -> Bool {
        outstanding.add(1, ordering: .relaxed)
        if queue.append(work) { return true }
        completed(1)
        return false
    }

    /// Removes an item that need not be executed any more; returns false where it does not wait here.
    func remove(_ item: WorkItem) -> Bool {
        guard queue.removeFirst(where: { $0.item === item }) else { return false }
        completed(1)
        return true
    }

    /// Notes that the thread is done with items.
    func completed(_ count: Int) { outstanding.subtract(count, ordering: .relaxed) }

    func take(timeout: Duration?) -> WorkQueue<ReadWork>.Taken { queue.take(timeout: timeout) }

    func close() { queue.close() }
}
