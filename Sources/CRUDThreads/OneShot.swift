import CLinux
import Glibc
import Synchronization

/// One value that one thread hands over to another, which waits for it.
package final class OneShot<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let resolved = Semaphore()

    package init() {}

    /// Hands over the value; to be called once.
    package func resolve(_ value: Value) {
        self.value.withLock { $0 = value }
        resolved.signal()
    }

    /// Waits for the value and takes it; to be called once.
    package func wait() -> Value {
        while true {
            resolved.wait()
            if let value = value.withLock({ $0.take() }) { return value }
        }
    }

    /// Waits for the value and takes it; nil where it has not come after `timeout`.
    package func wait(atMost timeout: Duration) -> Value? {
        resolved.wait(atMost: timeout) ? value.withLock { $0.take() } : nil
    }
}

/// A POSIX semaphore (sem_overview(7)).
private final class Semaphore: @unchecked Sendable {
    // @unchecked: sem_t is made to be used by several threads.
    private let pointer = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(pointer, 0, 0) }

    deinit {
        sem_destroy(pointer)
        pointer.deallocate()
    }

    func signal() { sem_post(pointer) }

    func wait() { sem_wait(pointer) }

    /// Returns whether it was signalled in time.
    func wait(atMost timeout: Duration) -> Bool {
        clinux_wait(pointer, max(0, timeout.milliseconds)) == 0
    }
}
