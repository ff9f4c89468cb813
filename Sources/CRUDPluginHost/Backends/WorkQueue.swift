#if canImport(Glibc)
import Glibc
#endif

/// What waits for a backend's worker. Anybody appends, one thread takes.
final class WorkQueue: @unchecked Sendable {
    // @unchecked: `mutex` guards every stored property; pthread's own are used because the worker has to wait on it with
    // a time limit, which Swift's Mutex cannot.

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var items: [WorkItem] = []
    private var isClosed = false
    private var isWoken = false
    private var isWaiting = false

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
        defer { pthread_mutex_unlock(mutex) }
        if isClosed { return false }
        items.append(item)
        if isWaiting { pthread_cond_signal(condition) }
        return true
    }

    /// Nothing more is accepted; what is there can still be taken.
    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
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
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
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
        let deadline = patience.map(Self.deadline)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if isWoken {
                isWoken = false
                return .woken
            }
            if !items.isEmpty { break }
            if isClosed { return .closed }
            isWaiting = true
            defer { isWaiting = false }
            if var deadline {
                if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return .nothing }
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
        var bytes = 0
        var count = 0
        while count < items.count, count == 0 || (count < Self.maximumItems && bytes < Self.maximumBytes) {
            bytes += items[count].byteCount
            count += 1
        }
        let taken = Array(items[..<count])
        items.removeFirst(count)
        return .items(taken)
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
