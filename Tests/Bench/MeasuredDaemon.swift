import CLinux
import FoundationEssentials
import Glibc

/// The socket on which a daemon says that it is ready, as to systemd.
final class ReadyNotifications {
    let path: String
    fileprivate let socket: Int32

    init(at path: String) throws {
        self.path = path
        socket = try UnixSocket.bind(path, SOCK_DGRAM)
    }

    /// Reads what has come. A daemon that reloads tells that, and would wait for a reader before long.
    func discard() {
        var message = [UInt8](repeating: 0, count: 4096)
        while recv(socket, &message, message.count, Int32(MSG_DONTWAIT)) >= 0 {}
    }

    deinit {
        close(socket)
        unlink(path)
    }
}

/// A daemon that has been started and is ready; it is killed when the last reference to it is gone.
final class MeasuredDaemon {
    private let program: String
    private var pid: pid_t = 0
    /// From its exec to the datagram with READY=1.
    private(set) var readyMilliseconds = 0.0

    /// How long a daemon may take to become ready, or to stop.
    private static let timeoutMilliseconds: Int32 = 10_000

    /// - Parameter command: the program and its arguments.
    init(_ command: [String], _ notifications: ReadyNotifications) throws {
        program = command.first ?? ""
        notifications.discard()
        let begun = MonotonicClock.now()
        try spawn(command, notifications.path)
        try awaitReady(notifications.socket)
        readyMilliseconds = Double(MonotonicClock.now() - begun) / 1e6
    }

    deinit {
        guard pid != 0 else { return }
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }

    private func spawn(_ command: [String], _ notifySocket: String) throws {
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        var environment = ProcessInfo.processInfo.environment
        environment["NOTIFY_SOCKET"] = notifySocket
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for text in arguments + variables { free(text) }
        }
        let failure = posix_spawnp(&pid, program, nil, nil, &arguments, &variables)
        guard failure == 0 else {
            pid = 0
            throw BenchError("\(program): \(String(cString: strerror(failure)))")
        }
    }

    private func awaitReady(_ notifications: Int32) throws {
        let deadline = MonotonicClock.now() + UInt64(Self.timeoutMilliseconds) * 1_000_000
        var message = [UInt8](repeating: 0, count: 4096)
        while MonotonicClock.now() < deadline {
            var arrival = pollfd(fd: notifications, events: Int16(POLLIN), revents: 0)
            if poll(&arrival, 1, 100) > 0 {
                let count = max(recv(notifications, &message, message.count, 0), 0)
                let lines = String(decoding: message[..<count], as: UTF8.self).split(separator: "\n")
                if lines.contains("READY=1") { return }
            } else if hasEnded {
                throw BenchError("\(program): ended before it was ready")
            }
        }
        throw BenchError("\(program): not ready after \(Self.timeoutMilliseconds) ms")
    }

    /// Whether it has ended; it can still be waited for.
    private var hasEnded: Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0
            && information.si_signo == SIGCHLD
    }

    var residentKiB: Int {
        get throws {
            let status = String(decoding: try Data(contentsOf: URL(filePath: "/proc/\(pid)/status")), as: UTF8.self)
            for line in status.split(separator: "\n") where line.hasPrefix("VmRSS:") {
                if let kibibytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) {
                    return kibibytes
                }
            }
            throw BenchError("no VmRSS of process \(pid)")
        }
    }

    func stop() throws {
        kill(pid, SIGTERM)
        for _ in 0..<Self.timeoutMilliseconds {
            if waitpid(pid, nil, WNOHANG) == pid {
                pid = 0
                return
            }
            usleep(1000)
        }
        throw BenchError("\(program): still there \(Self.timeoutMilliseconds) ms after SIGTERM")
    }
}
