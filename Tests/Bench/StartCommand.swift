import ArgumentParser
import CLinux
import FoundationEssentials
import Glibc

/// Measures the start of a daemon, as systemd would see it: from exec to the datagram with READY=1.
struct StartCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Start a daemon, measure the time to READY and its idle memory, stop it.")

    /// How long a daemon may take to become ready, or to stop.
    private static let timeoutMilliseconds: Int32 = 10_000
    /// How long a daemon is idle before its memory is read.
    private static let idleMicroseconds: useconds_t = 500_000

    @Option(help: "How often.")
    var times = 5
    @Option(help: "Path of the socket for READY=1.")
    var notifySocket: String
    @Option(help: "Name of the target in the results.")
    var target = "crudd"
    @Argument(parsing: .captureForPassthrough, help: "The daemon and its arguments.")
    var command: [String]

    func run() throws {
        let notifications = try UnixSocket.bind(notifySocket, SOCK_DGRAM)
        defer {
            close(notifications)
            unlink(notifySocket)
        }
        var start = Finding.Start(target: target, readyMilliseconds: [], residentKiB: [])
        for _ in 0..<times {
            let begun = MonotonicClock.now()
            let daemon = try spawn()
            do {
                try awaitReady(notifications, daemon)
                start.readyMilliseconds.append(Double(MonotonicClock.now() - begun) / 1e6)
                usleep(Self.idleMicroseconds)
                start.residentKiB.append(try residentKiB(daemon))
                try stop(daemon)
            } catch {
                kill(daemon, SIGKILL)
                waitpid(daemon, nil, 0)
                throw error
            }
        }
        print(try Finding.start(start).line())
        StandardError.print(
            "\(target) ready after \(start.readyMilliseconds.map { $0.text(digits: 1) }) ms, "
                + "resident \(start.residentKiB) KiB")
    }

    private func spawn() throws -> pid_t {
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        var environment = ProcessInfo.processInfo.environment
        environment["NOTIFY_SOCKET"] = notifySocket
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for text in arguments + variables { free(text) }
        }
        var pid: pid_t = 0
        let failure = posix_spawnp(&pid, program, nil, nil, &arguments, &variables)
        guard failure == 0 else { throw BenchError("\(program): \(String(cString: strerror(failure)))") }
        return pid
    }

    private func awaitReady(_ notifications: Int32, _ daemon: pid_t) throws {
        let deadline = MonotonicClock.now() + UInt64(Self.timeoutMilliseconds) * 1_000_000
        var message = [UInt8](repeating: 0, count: 4096)
        while MonotonicClock.now() < deadline {
            var arrival = pollfd(fd: notifications, events: Int16(POLLIN), revents: 0)
            if poll(&arrival, 1, 100) > 0 {
                let count = max(recv(notifications, &message, message.count, 0), 0)
                let lines = String(decoding: message[..<count], as: UTF8.self).split(separator: "\n")
                if lines.contains("READY=1") { return }
            } else if hasEnded(daemon) {
                throw BenchError("\(program): ended before it was ready")
            }
        }
        throw BenchError("\(program): not ready after \(Self.timeoutMilliseconds) ms")
    }

    private var program: String { command.first ?? "" }

    /// Whether the daemon has ended; it can still be waited for.
    private func hasEnded(_ daemon: pid_t) -> Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(daemon), &information, WEXITED | WNOHANG | WNOWAIT) == 0
            && information.si_signo == SIGCHLD
    }

    private func residentKiB(_ daemon: pid_t) throws -> Int {
        let status = String(decoding: try Data(contentsOf: URL(filePath: "/proc/\(daemon)/status")), as: UTF8.self)
        for line in status.split(separator: "\n") where line.hasPrefix("VmRSS:") {
            if let kibibytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) {
                return kibibytes
            }
        }
        throw BenchError("no VmRSS of process \(daemon)")
    }

    private func stop(_ daemon: pid_t) throws {
        kill(daemon, SIGTERM)
        for _ in 0..<Self.timeoutMilliseconds {
            if waitpid(daemon, nil, WNOHANG) == daemon { return }
            usleep(1000)
        }
        throw BenchError("\(program): still there \(Self.timeoutMilliseconds) ms after SIGTERM")
    }
}
