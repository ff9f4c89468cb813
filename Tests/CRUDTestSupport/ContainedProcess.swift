import CLinux
import Glibc
import Synchronization

/// A program in a process namespace of its own: what it starts ends with it, as on a machine that is switched off. It
/// ends when the last reference to it is gone, or the process of the tests. Only root can make one.
package final class ContainedProcess: Sendable {
    private let shell: ChildProcess
    /// The program ends when this is closed, however that comes about.
    private let lifeline: Mutex<Descriptor?>

    /// - Parameters:
    ///   - user: whom the program runs as.
    ///   - network: the file of its network namespace; nil: that of the tests.
    ///   - log: the file that its output is appended to.
    package init(
        _ program: String, _ arguments: [String], user: String, network: String? = nil, log: String
    ) throws {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Failure.system("socketpair")
        }
        let input = Descriptor(owning: ends[0])
        lifeline = Mutex(Descriptor(owning: ends[1]))
        let output = Descriptor(owning: open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644))
        // What unshare has started is the first process of its namespace, with which all others end.
        // The user may not enter the directory of the tests, without which Patroni makes no cluster.
        let script = #"cd /; "$0" "$@" < /dev/null & child=$!; read line; pkill -KILL -P $child; wait $child"#
        let identity = ["--reuid", user, "--regid", user, "--clear-groups", "--"]
        // The shell becomes what enters the namespace, and that unshare.
        let isolation =
            (network.map { ["nsenter", "--net=\($0)", "--"] } ?? [])
            + ["unshare", "--pid", "--fork", "--mount-proc", "--", "setpriv"]
        shell = try ChildProcess(
            "sh",
            ["-c", script] + isolation + identity + [program] + arguments,
            descriptors: [(input, STDIN_FILENO), (output, STDOUT_FILENO), (output, STDERR_FILENO)])
    }

    deinit { try? kill() }

    package var isRunning: Bool { get throws { try shell.isRunning } }

    /// Kills all of its processes with SIGKILL and waits for their end.
    package func kill() throws {
        let processes = try processes { _ in true }
        lifeline.withLock { $0 = nil }
        try shell.waitForExit()
        let deadline = Deadline()
        while processes.contains(where: { Self.status(of: $0) != nil }) {
            guard !deadline.hasPassed else { throw Failure("processes do not end: \(processes)") }
            poll(nil, 0, 5)
        }
    }

    /// Stops those of its processes with SIGSTOP whose name is accepted.
    ///
    /// - Returns: what continues them.
    package func freeze(where isMeant: (String) -> Bool = { _ in true }) throws -> @Sendable () -> Void {
        let processes = try processes(where: isMeant)
        for pid in processes { Glibc.kill(pid, SIGSTOP) }
        return { for pid in processes { Glibc.kill(pid, SIGCONT) } }
    }

    private func processes(where isMeant: (String) -> Bool) throws -> [Int32] {
        var children: [Int32: [(pid: Int32, name: String)]] = [:]
        for pid in try Files.names(in: "/proc").compactMap({ Int32($0) }) {
            guard let (name, parent) = Self.status(of: pid) else { continue }
            children[parent, default: []].append((pid, name))
        }
        var found: [Int32] = []
        var open = [shell.pid]
        while let pid = open.popLast() {
            for child in children[pid] ?? [] {
                open.append(child.pid)
                if isMeant(child.name) { found.append(child.pid) }
            }
        }
        return found
    }

    private static func status(of pid: Int32) -> (name: String, parent: Int32)? {
        guard let bytes = try? Files.read("/proc/\(pid)/stat") else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let open = text.firstIndex(of: "("), let close = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: close)...].split(separator: " ")
        // What has ended may wait for its parent.
        guard fields.count > 1, fields[0] != "Z", let parent = Int32(fields[1]) else { return nil }
        return (String(text[text.index(after: open)..<close]), parent)
    }
}
