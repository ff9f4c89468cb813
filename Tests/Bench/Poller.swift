import CLinux
import Glibc

/// epoll(7), level-triggered. Each descriptor carries a number of the caller's choice.
final class Poller {
    private let descriptor: Int32
    private var events = [epoll_event](repeating: epoll_event(), count: 256)

    init() throws {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw BenchError.system("epoll_create1") }
    }

    deinit {
        close(descriptor)
    }

    func add(_ socket: Int32, number: Int) throws {
        try control(EPOLL_CTL_ADD, socket, number, EPOLLIN.rawValue)
    }

    /// Starts or stops waiting until `socket` is writable.
    func awaitWritable(_ socket: Int32, number: Int, _ wanted: Bool) throws {
        try control(EPOLL_CTL_MOD, socket, number, EPOLLIN.rawValue | (wanted ? EPOLLOUT.rawValue : 0))
    }

    private func control(_ operation: Int32, _ socket: Int32, _ number: Int, _ mask: UInt32) throws {
        var event = epoll_event(events: mask, data: epoll_data_t(u64: UInt64(number)))
        guard epoll_ctl(descriptor, operation, socket, &event) == 0 else { throw BenchError.system("epoll_ctl") }
    }

    /// Waits for at most `milliseconds`; returns how many descriptors are ready, of which `number(at:)` returns the
    /// numbers.
    func wait(milliseconds: Int32) throws -> Int {
        let count = epoll_wait(descriptor, &events, Int32(events.count), milliseconds)
        if count >= 0 { return Int(count) }
        guard errno == EINTR else { throw BenchError.system("epoll_wait") }
        return 0
    }

    func number(at index: Int) -> Int {
        Int(events[index].data.u64)
    }

    func isWritable(at index: Int) -> Bool {
        events[index].events & EPOLLOUT.rawValue != 0
    }

    func isReadable(at index: Int) -> Bool {
        events[index].events & ~EPOLLOUT.rawValue != 0
    }
}
