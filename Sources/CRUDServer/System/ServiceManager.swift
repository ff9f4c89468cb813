import CLinux
import Glibc

/// The service manager that has started the daemon (sd_notify(3), sd_listen_fds(3)). Without one no message is sent.
package struct ServiceManager: Sendable {
    private let notifySocket: String?
    private let watchdogMicroseconds: Int?
    /// The sockets that it passes.
    package let listeningSockets: [CInt]

    /// Reads its variables and removes them from the environment, so that no child takes them for its own.
    package init() {
        notifySocket = Self.variable("NOTIFY_SOCKET")
        let watchdog = Self.variable("WATCHDOG_USEC").flatMap { Int($0) }
        let watchdogProcess = Self.variable("WATCHDOG_PID").flatMap { pid_t($0) }
        watchdogMicroseconds = watchdogProcess == nil || watchdogProcess == getpid() ? watchdog : nil
        let count = Self.variable("LISTEN_FDS").flatMap { CInt($0) } ?? 0
        let isOurs = Self.variable("LISTEN_PID").flatMap { pid_t($0) } == getpid()
        listeningSockets = isOurs && count > 0 ? (0..<count).map { Self.firstSocket + $0 } : []
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
            unsetenv(name)
        }
        for descriptor in listeningSockets {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        }
    }

    /// SD_LISTEN_FDS_START.
    private static let firstSocket: CInt = 3

    /// How often to tell it that the daemon is alive: half of what it allows; nil if it does not watch.
    package var watchdogInterval: Duration? { watchdogMicroseconds.map { .microseconds($0 / 2) } }

    /// - Parameter status: one line.
    package func ready(_ status: String) { notify("READY=1\nSTATUS=\(status)") }

    /// The configuration is being read again; ``ready(_:)`` says when that is over. With the time, which
    /// `Type=notify-reload` asks for in the same datagram (systemd.service(5)).
    package func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        notify("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1000)")
    }

    package func stopping() { notify("STOPPING=1\nSTATUS=Finishing requests in flight") }

    package func alive() { notify("WATCHDOG=1") }

    private func notify(_ message: String) {
        guard let notifySocket else { return }
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        // One that does not read its messages must not block the daemon for long.
        var timeout = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var path = Array(notifySocket.utf8)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        // `@` stands for the NUL of an abstract address.
        if path.first == UInt8(ascii: "@") { path[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t((MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + path.count)
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                // Nothing is to be done if it does not listen.
                _ = sendto(descriptor, message, message.utf8.count, CInt(MSG_NOSIGNAL), address, length)
            }
        }
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}
