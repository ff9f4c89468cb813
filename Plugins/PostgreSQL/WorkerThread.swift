import CLinux
import CRUDPluginThreads
import Glibc
import Synchronization

/// A thread that rests until it is told that there is something to do.
final class WorkerThread: Sendable {
    private let name: String
    private let thread = Mutex<pthread_t?>(nil)
    private let isStopping = Atomic(false)
    private let wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

    init(named name: String) {
        self.name = name
    }

    deinit {
        close(wakeup)
    }

    /// Wakes it, or starts it: where the system had no thread, the next call tries again.
    ///
    /// - Parameter body: what it does until ``hasToStop``.
    func wake(_ body: @escaping @Sendable () -> Void) {
        thread.withLock { thread in
            if thread == nil, !hasToStop { thread = BackgroundThread.start(named: name, body) }
        }
        eventfd_write(wakeup, 1)
    }

    /// Whether it is to end; for the thread.
    var hasToStop: Bool { isStopping.load(ordering: .acquiring) }

    /// Waits until it is woken or has to stop, or until a socket has something to be read; for the thread.
    ///
    /// - Parameter milliseconds: -1: without an end.
    func rest(_ milliseconds: Int32, socket: Int32 = -1) {
        var interests = [
            pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
        ]
        guard !hasToStop, poll(&interests, 2, milliseconds) > 0, interests[0].revents != 0 else { return }
        var count: UInt64 = 0
        eventfd_read(wakeup, &count)
    }

    /// Ends it and waits for that.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        eventfd_write(wakeup, 1)
        if let thread = thread.withLock({ $0.take() }) { pthread_join(thread, nil) }
    }
}
