import CLinux
import Glibc

/// What epoll reports about a descriptor, or is asked to report.
struct Readiness: OptionSet {
    let rawValue: UInt32

    static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    static let writable = Readiness(rawValue: EPOLLOUT.rawValue)

    /// Both directions are shut, or the socket has failed. Reported unasked for as long as the descriptor is
    /// registered.
    static let hungUp = Readiness(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
}

/// The system calls of epoll(7), level-triggered, with the array that they report into.
struct Epoll: ~Copyable {
    private let descriptor: CInt
    private let events: UnsafeMutableBufferPointer<epoll_event>

    /// - Parameter capacity: how many descriptors one ``wait(milliseconds:)`` reports at most. The next wait reports
    ///   the remaining ones first.
    init(capacity: Int) throws(SystemCallError) {
        descriptor = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw SystemCallError("epoll_create1") }
        events = .allocate(capacity: capacity)
        events.initialize(repeating: epoll_event())
    }

    deinit {
        close(descriptor)
        events.deallocate()
    }

    /// Waits for something to report.
    ///
    /// - Parameter milliseconds: how long; -1 is for ever, 0 not at all.
    /// - Returns: how many events there are; a signal ends the wait with none.
    func wait(milliseconds: CInt) -> Int {
        let count = epoll_wait(descriptor, events.baseAddress, CInt(events.count), milliseconds)
        if count < 0 {
            // Every other error means that this code has closed its own descriptor or freed its memory.
            precondition(errno == EINTR, "epoll_wait: errno \(errno)")
            return 0
        }
        return Int(count)
    }

    /// An event that the last ``wait(milliseconds:)`` has reported.
    subscript(index: Int) -> (descriptor: CInt, readiness: Readiness) {
        (events[index].data.fd, Readiness(rawValue: events[index].events))
    }

    /// Changes what a descriptor is watched for, `old` being what it was watched for; nil: it is not registered.
    func watch(_ watched: CInt, for new: Readiness?, insteadOf old: Readiness?) throws(SystemCallError) {
        let operation = old == nil ? EPOLL_CTL_ADD : new == nil ? EPOLL_CTL_DEL : EPOLL_CTL_MOD
        try control(operation, watched, new?.rawValue ?? 0)
    }

    /// Watches an eventfd so that each write to it ends a wait once, without the need to read it.
    func watchEdges(of eventDescriptor: CInt) throws(SystemCallError) {
        try control(EPOLL_CTL_ADD, eventDescriptor, EPOLLIN.rawValue | EPOLLET.rawValue)
    }

    private func control(_ operation: CInt, _ watched: CInt, _ mask: UInt32) throws(SystemCallError) {
        var event = epoll_event(events: mask, data: epoll_data_t(fd: watched))
        guard epoll_ctl(descriptor, operation, watched, &event) == 0 else { throw SystemCallError("epoll_ctl") }
    }
}
