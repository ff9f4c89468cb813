import CLinux
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// One value from one thread to another that waits for it.
package final class Handover<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let given = Semaphore()

    package init() {}

    /// Gives the value; to be called once.
    package func give(_ value: Value) {
        self.value.withLock { $0 = value }
        given.signal()
    }

    /// Waits for the value and takes it; to be called once.
    package func wait() -> Value {
        while true {
            given.wait()
            if let value = value.withLock({ $0.take() }) { return value }
        }
    }

    /// Waits for the value at most so long and takes it; nil if it has not come by then.
    package func wait(atMost patience: Duration) -> Value? {
        given.wait(atMost: patience) ? value.withLock { $0.take() } : nil
    }
}

/// A POSIX semaphore (sem_overview(7)).
private final class Semaphore: @unchecked Sendable {
    // @unchecked: the system's semaphore is made for several threads.
    private let pointer = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(pointer, 0, 0) }

    deinit {
        sem_destroy(pointer)
        pointer.deallocate()
    }

    func signal() { sem_post(pointer) }

    func wait() { sem_wait(pointer) }

    /// Whether it was signalled in time.
    func wait(atMost patience: Duration) -> Bool {
        let (seconds, attoseconds) = patience.components
        return clinux_wait(pointer, max(0, seconds * 1000 + attoseconds / 1_000_000_000_000_000)) == 0
    }
}
