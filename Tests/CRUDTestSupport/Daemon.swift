import Glibc

/// A real crudd on a real socket. It is killed when the last reference to it is gone.
package final class Daemon: Sendable {
    package let installation: Installation
    package let process: ChildProcess
    package let notifications: NotificationSocket
    /// The time from the start of the process to READY=1.
    package let startTime: Duration

    package var socketPath: String { installation.socketPath }

    /// Starts a daemon on an installation of its own and waits for READY=1.
    package convenience init(_ configuration: Configuration = Configuration()) throws {
        try self.init(on: Installation(configuration))
    }

    /// Starts a daemon and waits for READY=1.
    ///
    /// - Parameters:
    ///   - listener: a listening socket, passed as systemd does.
    ///   - environment: in addition to the usual variables, which it may replace.
    package init(
        on installation: Installation, arguments: [String] = [], environment: [String: String] = [:],
        listener: Descriptor? = nil
    ) throws {
        self.installation = installation
        notifications = try NotificationSocket(at: "\(installation.path)/notify")
        var variables = ["NOTIFY_SOCKET": notifications.path, "HOME": installation.path]
        let log = open(Self.logPath(of: installation), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard log >= 0 else { throw Failure.system("open the daemon's log") }
        let streams = Descriptor(owning: log)
        var descriptors = [(streams, STDOUT_FILENO), (streams, STDERR_FILENO)]
        let crudd = try BuildProducts.path(of: "crudd")
        var command = (crudd, ["--config", installation.configurationFile] + arguments)
        if let listener {
            descriptors.append((listener, 3))
            variables.merge(["LISTEN_FDS": "1", "LISTEN_FDNAMES": "rpc"]) { $1 }
            // LISTEN_PID must name the daemon itself: the shell becomes it.
            command = ("sh", ["-c", "LISTEN_PID=${PID:-$$} exec \"$0\" \"$@\"", crudd] + command.1)
        }
        let start = ContinuousClock.now
        process = try ChildProcess(
            command.0, command.1, environment: variables.merging(environment) { $1 }, descriptors: descriptors)
        try Self.awaitReady(notifications, process, installation)
        startTime = start.duration(to: .now)
    }

    /// Waits for the end of this daemon, and starts one again on the same installation.
    package func restarted(listener: Descriptor? = nil) throws -> Daemon {
        try process.waitForExit()
        return try Daemon(on: installation, listener: listener)
    }

    /// A new connection; as another user if `peer` is given. It keeps this daemon from being killed.
    package func connect(as peer: Peer? = nil) throws -> Connection {
        try Connection(to: socketPath, as: peer, of: self)
    }

    /// Sends SIGTERM and waits for the end of the daemon.
    @discardableResult
    package func stop(until deadline: Deadline = Deadline()) throws -> ExitStatus {
        process.signal(SIGTERM)
        return try process.waitForExit(until: deadline)
    }

    /// Sends SIGKILL and waits for the end of the daemon.
    package func kill() throws {
        process.signal(SIGKILL)
        try process.waitForExit()
    }

    /// The standard error of all daemons of this installation.
    package var log: String {
        (try? String(decoding: Files.read(Self.logPath(of: installation)), as: UTF8.self)) ?? ""
    }

    /// VmRSS, in bytes.
    package var residentBytes: Int { get throws { try memory("VmRSS:") } }

    /// VmHWM, in bytes: the most that ``residentBytes`` has been.
    package var peakResidentBytes: Int { get throws { try memory("VmHWM:") } }

    private func memory(_ name: String) throws -> Int {
        let status = String(decoding: try Files.read("/proc/\(process.pid)/status"), as: UTF8.self)
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
            let kibibytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({
                Int($0)
            })
        else { throw Failure("no \(name) of \(process.pid)") }
        return kibibytes * 1024
    }

    /// How many threads it has.
    package var threadCount: Int {
        get throws { try Files.names(in: "/proc/\(process.pid)/task").count }
    }

    /// The child processes of its threads.
    package var children: [String] {
        get throws {
            try Files.names(in: "/proc/\(process.pid)/task").flatMap { task in
                // A thread may have ended meanwhile.
                let text = (try? Files.read("/proc/\(process.pid)/task/\(task)/children")) ?? []
                return String(decoding: text, as: UTF8.self).split(separator: " ").map(String.init)
            }
        }
    }

    /// How many descriptors it has open.
    package var descriptorCount: Int {
        get throws { try Files.names(in: "/proc/\(process.pid)/fd").count }
    }

    private static func logPath(of installation: Installation) -> String { "\(installation.path)/crudd.log" }

    private static func awaitReady(
        _ notifications: NotificationSocket, _ process: ChildProcess, _ installation: Installation
    ) throws {
        let deadline = Deadline()
        while !notifications.received.contains("READY=1") {
            let interests = [(notifications.descriptor.number, POLLIN), (process.handle.number, POLLIN)]
            let events = try Descriptor.wait(for: interests, until: deadline)
            guard events[0] != 0 else {
                let outcome = events[1] != 0 ? "ended: \(try process.waitForExit())" : "does not become ready"
                let log = try String(decoding: Files.read(logPath(of: installation)), as: UTF8.self)
                throw Failure("the daemon \(outcome)\n\(log)")
            }
        }
    }
}
