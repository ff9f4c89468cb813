import Glibc
import Synchronization

/// An item of a ``WorkQueue``.
package protocol QueueItem {
    /// How many bytes this item adds to the batch that the worker takes.
    var byteCount: Int { get }
    /// How many operations it stands for, to a worker that gathers some; nil: it must not wait for others.
    var operationCount: Int? { get }
}

extension QueueItem {
    package var operationCount: Int? { nil }
}

/// What a worker waits for when an item has come, so that its batch has more.
package struct Gathering: Equatable, Sendable {
    /// How many operations suffice.
    package let count: Int
    /// How long to wait at most.
    package let limit: Duration

    package init(count: Int, limit: Duration) {
        self.count = count
        self.limit = limit
    }
}

/// A queue from any number of threads to one worker thread, which takes several items at once.
///
/// A worker that finds the queue empty spins before it sleeps where the next item is likely to come at once
/// (``AdaptiveSpin``).
package final class WorkQueue<Item: QueueItem>: @unchecked Sendable {
    // @unchecked: `mutex` guards every stored property that is not atomic, apart from `spin`, which only the worker
    // uses. The mutex and condition are pthread's, because the worker waits with a timeout, which Swift's Mutex cannot.

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var items: [Item] = []
    private var isClosed = false
    private var isWoken = false
    private var isWaiting = false
    /// Counts what ends a wait, for a worker that spins.
    private let events = Atomic<UInt64>(0)
    private var spin = AdaptiveSpin()

    package init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// How many items wait.
    package var count: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return items.count
    }

    /// Appends an item; returns false where the queue is closed.
    package func append(_ item: Item) -> Bool {
        pthread_mutex_lock(mutex)
        let isAccepted = !isClosed
        if isAccepted { items.append(item) }
        events.add(1, ordering: .relaxed)
        let needsSignal = isAccepted && isWaiting
        pthread_mutex_unlock(mutex)
        // Not while the mutex is held: the worker would wake only to wait for it.
        if needsSignal { pthread_cond_signal(condition) }
        return isAccepted
    }

    /// Removes the first item for which this is true and that need not be taken any more; returns false where there is
    /// none in the queue.
    package func removeFirst(where isUnwanted: (Item) -> Bool) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard let index = items.firstIndex(where: isUnwanted) else { return false }
        items.remove(at: index)
        return true
    }

    /// Accepts no further items; those that are in the queue can still be taken.
    package func close() {
        changeState { isClosed = true }
    }

    /// Makes the present or else the next ``take(timeout:)`` return ``Taken/woken``.
    package func wake() {
        changeState { isWoken = true }
    }

    private func changeState(_ change: () -> Void) {
        pthread_mutex_lock(mutex)
        change()
        events.add(1, ordering: .relaxed)
        pthread_mutex_unlock(mutex)
        pthread_cond_signal(condition)
    }

    /// How ``take(timeout:)`` ended.
    package enum Taken {
        case items([Item])
        /// Nothing came in time.
        case timedOut
        /// ``wake()`` was called; nothing was taken.
        case woken
        /// The queue is closed and empty.
        case closed
    }

    /// Waits for items and takes them in order: all that are there, up to the number and the bytes that one batch may
    /// have.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the first item; nil is for ever.
    ///   - gathering: what to wait for once that is there; nil: nothing.
    package func take(timeout: Duration?, gathering: Gathering? = nil) -> Taken {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if items.isEmpty, !isClosed, !isWoken, timeout != .zero { wait(timeout) }
        if isWoken {
            isWoken = false
            return .woken
        }
        if let gathering { gather(gathering) }
        guard !items.isEmpty else { return isClosed ? .closed : .timedOut }
        return .items(takeBatch())
    }

    /// Waits until ``take(timeout:)`` has something to return or the timeout has passed; the mutex, which the caller
    /// holds, is unlocked meanwhile.
    private func wait(_ timeout: Duration?) {
        let seen = events.load(ordering: .relaxed)
        pthread_mutex_unlock(mutex)
        spin.wait {
            events.load(ordering: .relaxed) == seen ? nil : ()
        } sleep: {
            pthread_mutex_lock(mutex)
            sleep(timeout)
            pthread_mutex_unlock(mutex)
        }
        pthread_mutex_lock(mutex)
    }

    private func sleep(_ timeout: Duration?) {
        let deadline = timeout.map { MonotonicTime.timespec(after: $0) }
        isWaiting = true
        defer { isWaiting = false }
        while items.isEmpty, !isClosed, !isWoken {
            if var deadline {
                if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return }
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
    }

    /// How many operations wait; nil: an item among them must not wait for others.
    package var operationCount: Int? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return waitingOperationCount
    }

    private var waitingOperationCount: Int? {
        var sum = 0
        for item in items {
            guard let count = item.operationCount else { return nil }
            sum += count
        }
        return sum
    }

    /// Waits until there are enough operations, or an item that must not wait, or none that was not removed.
    private func gather(_ gathering: Gathering) {
        var deadline = MonotonicTime.timespec(after: gathering.limit)
        isWaiting = true
        defer { isWaiting = false }
        while !isClosed, !isWoken, let count = waitingOperationCount, 1..<gathering.count ~= count {
            if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return }
        }
    }

    private func takeBatch() -> [Item] {
        var bytes = 0
        var count = 0
        while count < items.count, count == 0 || (count < maximumBatchItems && bytes < maximumBatchBytes) {
            bytes += items[count].byteCount
            count += 1
        }
        let batch = Array(items[..<count])
        items.removeFirst(count)
        return batch
    }
}

// How much one batch may have, lest one call of a plugin take long. A batch has one item at least.
private let maximumBatchItems = 256
private let maximumBatchBytes = 8 << 20
