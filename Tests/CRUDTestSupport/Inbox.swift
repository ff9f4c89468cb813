import CLinux
import Glibc
import Synchronization

/// Values from other threads, for which a test waits with a deadline.
package final class Inbox<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    /// Readable once for each value: an eventfd(2) as a semaphore.
    private let bell: Descriptor

    package init() throws {
        let number = eventfd(0, CInt(EFD_CLOEXEC | EFD_SEMAPHORE))
        guard number >= 0 else { throw Failure.system("eventfd") }
        bell = Descriptor(owning: number)
    }

    package func put(_ value: Value) {
        values.withLock { $0.append(value) }
        eventfd_write(bell.number, 1)
    }

    /// The values in the order in which they came.
    package func take(until deadline: Deadline = Deadline()) throws -> Value {
        guard try bell.wait(for: POLLIN, until: deadline) != 0 else { throw Failure("no value arrives") }
        var count: eventfd_t = 0
        eventfd_read(bell.number, &count)
        return values.withLock { $0.removeFirst() }
    }

    /// How many values have not been taken yet.
    package var count: Int { values.withLock(\.count) }
}
