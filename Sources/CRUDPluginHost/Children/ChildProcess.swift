import CLinux
import CRUDPluginABI
import CRUDThreads
import Glibc
import Synchronization

/// A process that the daemon has started, in a process group of its own.
///
/// It must be started by a thread that stays as long as it is wanted: the kernel kills it when that thread ends.
final class ChildProcess: Sendable {
    let pid: pid_t
    /// Readable once the process has ended.
    let handle: CInt
    private let ending = Mutex<Ending?>(nil)

    /// How a process has ended.
    enum Ending: Sendable, Equatable, CustomStringConvertible {
        case exited(CInt)
        case killed(CInt)

        var description: String {
            switch self {
            case .exited(let status): "ended with status \(status)"
            case .killed(let signal): "was killed by signal \(signal) (\(String(cString: strsignal(signal))))"
            }
        }
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: the program's path first.
    ///   - descriptors: what it gets as 0, 1, 2 and so on; nil is `/dev/null`. It gets no other.
    /// - Throws: ``PluginFailure``, `unavailable`.
    init(_ arguments: [String], environment: [String], descriptors: [CInt?]) throws(PluginFailure) {
        pid = try Self.spawn(arguments, environment, descriptors)
        handle = pidfd_open(pid, 0)
        guard handle >= 0 else {
            let code = errno
            Glibc.kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            throw Self.failure("pidfd_open", code)
        }
    }

    deinit { close(handle) }

    /// Ends it, and what it has started in its process group.
    func kill() {
        ending.withLock { if $0 == nil { Glibc.kill(-pid, SIGKILL) } }
    }

    /// How it has ended; nil while it runs. What is left of its process group ends with it.
    func reap() -> Ending? {
        ending.withLock { ending in
            if let ending { return ending }
            var information = siginfo_t()
            guard waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0, isReadable(within: .zero)
            else { return nil }
            Glibc.kill(-pid, SIGKILL)
            var status: CInt = 0
            guard waitpid(pid, &status, 0) == pid else { return nil }
            // The layout that <sys/wait.h> hides in macros, which Swift does not import.
            let signal = status & 0x7F
            ending = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal)
            return ending
        }
    }

    /// Waits for its end; nil if it has not ended in time.
    func waitForEnd(within timeout: Duration) -> Ending? {
        isReadable(within: timeout) ? reap() : nil
    }

    private func isReadable(within timeout: Duration) -> Bool {
        let deadline = MonotonicTime.now + timeout
        while true {
            var events = pollfd(fd: handle, events: Int16(POLLIN), revents: 0)
            let count = poll(&events, 1, (deadline - MonotonicTime.now).pollMilliseconds)
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    // MARK: Starting

    private static func spawn(
        _ arguments: [String], _ environment: [String], _ descriptors: [CInt?]
    ) throws(PluginFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // From numbers above every target, so that no target overwrites a source that is yet to come.
        var copies: [CInt] = []
        defer { for copy in copies { close(copy) } }
        for (target, source) in descriptors.enumerated() {
            guard let source else {
                posix_spawn_file_actions_addopen(&actions, CInt(target), "/dev/null", O_RDWR, 0)
                continue
            }
            let copy = fcntl(source, F_DUPFD_CLOEXEC, CInt(descriptors.count))
            guard copy >= 0 else { throw failure("fcntl", errno) }
            copies.append(copy)
            posix_spawn_file_actions_adddup2(&actions, copy, CInt(target))
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The daemon blocks and ignores signals; a child starts as any program does.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

        let argumentPointers = arguments.map { strdup($0) } + [nil]
        let environmentPointers = environment.map { strdup($0) } + [nil]
        defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, arguments[0], &actions, &attributes, argumentPointers, environmentPointers)
        guard code == 0 else { throw failure(arguments[0], code) }
        return pid
    }

    private static func failure(_ what: String, _ code: CInt) -> PluginFailure {
        PluginFailure(
            status: CRUDD_UNAVAILABLE, message: "no child process: \(what): \(String(cString: strerror(code)))")
    }
}
