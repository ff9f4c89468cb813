import CLinux
import CRUDTestSupport
import Glibc
import Synchronization

/// Values from other threads, for a test that waits for them, but not for ever.
final class Inbox<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    /// Readable once for each value: an eventfd(2) that counts.
    private let bell: Descriptor

    init() throws {
        let number = eventfd(0, CInt(EFD_CLOEXEC | EFD_SEMAPHORE))
        guard number >= 0 else { throw Failure.system("eventfd") }
        bell = Descriptor(owning: number)
    }

    func put(_ value: Value) {
        values.withLock { $0.append(value) }
        eventfd_write(bell.number, 1)
    }

    /// The values in the order in which they came.
    func take(until deadline: Deadline = Deadline()) throws -> Value {
        guard try bell.wait(for: POLLIN, until: deadline) != 0 else { throw Failure("nothing comes") }
        var count: eventfd_t = 0
        eventfd_read(bell.number, &count)
        return values.withLock { $0.removeFirst() }
    }

    /// How many values wait to be taken.
    var count: Int { values.withLock(\.count) }
}
