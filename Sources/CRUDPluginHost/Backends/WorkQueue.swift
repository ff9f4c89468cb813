import CRUDEventLoop
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// What waits for a backend's worker. Anybody appends, one thread takes, which looks out for the next arrival where that
/// is likely to come at once (``Lookout``).
final class WorkQueue: @unchecked Sendable {
    // @unchecked: `mutex` guards every stored property that is not atomic, but `lookout`, which is the worker's alone;
    // pthread's own are used because the worker has to wait on it with a time limit, which Swift's Mutex cannot.

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var items: [WorkItem] = []
    private var isClosed = false
    private var isWoken = false
    private var isWaiting = false
    /// How often something was appended or the queue closed, for a worker that looks out.
    private let arrivals = Atomic<UInt64>(0)
    private var lookout = Lookout()

    init() {
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

    /// Appends an item; false once the queue is closed.
    func append(_ item: WorkItem) -> Bool {
        pthread_mutex_lock(mutex)
        let isAccepted = !isClosed
        if isAccepted { items.append(item) }
        arrivals.add(1, ordering: .relaxed)
        let wakes = isAccepted && isWaiting
        pthread_mutex_unlock(mutex)
        // Not while the mutex is held: the worker would wake only to wait for it.
        if wakes { pthread_cond_signal(condition) }
        return isAccepted
    }

    /// Nothing more is accepted; what is there can still be taken.
    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        arrivals.add(1, ordering: .relaxed)
        pthread_mutex_unlock(mutex)
        pthread_cond_signal(condition)
    }

    /// Accepts items again.
    func reopen() {
        pthread_mutex_lock(mutex)
        isClosed = false
        pthread_mutex_unlock(mutex)
    }

    /// Has whoever takes, or is going to take next, look around first.
    func wake() {
        pthread_mutex_lock(mutex)
        isWoken = true
        arrivals.add(1, ordering: .relaxed)
        pthread_mutex_unlock(mutex)
        pthread_cond_signal(condition)
    }

    /// What taking from the queue came to.
    enum Taken {
        case items([WorkItem])
        /// Nothing came in time.
        case nothing
        /// ``wake()`` was called; nothing was taken.
        case woken
        /// The queue is closed and empty.
        case closed
    }

    /// Waits for items and takes them, in order: all that are there, but so many bytes and items that one call of the
    /// plugin stays a sensible size.
    ///
    /// - Parameter patience: how long to wait for the first; nil for ever.
    func take(patience: Duration?) -> Taken {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if items.isEmpty, !isClosed, !isWoken, patience != .zero { wait(patience) }
        if isWoken {
            isWoken = false
            return .woken
        }
        guard !items.isEmpty else { return isClosed ? .closed : .nothing }
        return .items(takeSome())
    }

    /// Waits until there is something to take, the queue is closed, or somebody wakes it, or its time is up; the mutex is
    /// let go meanwhile.
    private func wait(_ patience: Duration?) {
        let seen = arrivals.load(ordering: .relaxed)
        pthread_mutex_unlock(mutex)
        lookout.wait {
            arrivals.load(ordering: .relaxed) == seen ? nil : ()
        } sleep: {
            pthread_mutex_lock(mutex)
            sleep(patience)
            pthread_mutex_unlock(mutex)
        }
        pthread_mutex_lock(mutex)
    }

    private func sleep(_ patience: Duration?) {
        let deadline = patience.map(Self.deadline)
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

    private func takeSome() -> [WorkItem] {
        var bytes = 0
        var count = 0
        while count < items.count, count == 0 || (count < Self.maximumItems && bytes < Self.maximumBytes) {
            bytes += items[count].byteCount
            count += 1
        }
        let taken = Array(items[..<count])
        items.removeFirst(count)
        return taken
    }

    private static let maximumItems = 256
    private static let maximumBytes = 8 << 20

    private static func deadline(_ patience: Duration) -> timespec {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let (seconds, attoseconds) = patience.components
        let nanoseconds = now.tv_nsec + Int(attoseconds / 1_000_000_000)
        return timespec(
            tv_sec: now.tv_sec + Int(seconds) + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    }
}
