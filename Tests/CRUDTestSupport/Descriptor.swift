import CLinux
import Glibc

/// An open file descriptor that closes itself.
package final class Descriptor: Sendable {
    package let number: Int32

    package init(owning number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// Waits for `events`; returns those that have occurred, none if `deadline` passes first.
    package func wait(for events: Int32, until deadline: Deadline) throws -> Int32 {
        try Descriptor.wait(for: [(number, events)], until: deadline)[0]
    }

    /// poll(2) of several descriptors; returns the events of each, none at all if `deadline` passes first.
    package static func wait(
        for interests: [(descriptor: Int32, events: Int32)], until deadline: Deadline
    ) throws -> [Int32] {
        var entries = interests.map { pollfd(fd: $0.descriptor, events: Int16($0.events), revents: 0) }
        while true {
            if poll(&entries, nfds_t(entries.count), deadline.milliseconds) >= 0 {
                return entries.map { Int32($0.revents) }
            }
            guard errno == EINTR else { throw Failure.system("poll") }
        }
    }

    /// An unconnected Unix stream socket, closed on exec.
    package static func streamSocket() throws -> Descriptor { try socket(SOCK_STREAM) }

    /// An unbound Unix datagram socket, closed on exec.
    package static func datagramSocket() throws -> Descriptor { try socket(SOCK_DGRAM) }

    private static func socket(_ type: __socket_type) throws -> Descriptor {
        let number = Glibc.socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw Failure.system("socket") }
        return Descriptor(owning: number)
    }

    /// A listening stream socket at `path`.
    package static func listener(at path: String, backlog: Int32 = 128) throws -> Descriptor {
        let listener = try streamSocket()
        let outcome = try UnixAddress.with(path) { bind(listener.number, $0, $1) }
        guard outcome == 0 else { throw Failure.system("bind \(path)") }
        guard listen(listener.number, backlog) == 0 else { throw Failure.system("listen \(path)") }
        return listener
    }

    /// Raises this process's limit of descriptors to the maximum: some tests have a thousand connections.
    package static func raiseLimit() throws {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw Failure.system("getrlimit")
        }
        limit.rlim_cur = limit.rlim_max
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw Failure.system("setrlimit")
        }
    }
}
