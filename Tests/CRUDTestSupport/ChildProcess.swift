import CLinux
import Glibc
import Synchronization

/// How a process ended.
package enum ExitStatus: Equatable, Sendable {
    case exited(Int32)
    case killed(signal: Int32)
}

/// A process that this one has started. It is killed when the last reference to it is gone.
package final class ChildProcess: Sendable {
    package let pid: Int32
    /// Readable once the process has ended.
    package let handle: Descriptor
    private let status = Mutex<ExitStatus?>(nil)

    /// Starts `path` (searched for in PATH if it has no slash).
    ///
    /// - Parameters:
    ///   - environment: in addition to the variables that every process needs; see ``baseEnvironment``.
    ///   - descriptors: the descriptors of the process, with their numbers; standard input is `/dev/null` by default.
    package init(
        _ path: String, _ arguments: [String], environment: [String: String] = [:],
        descriptors: [(source: Descriptor, target: Int32)]
    ) throws {
        let variables = Self.baseEnvironment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        pid = try Self.spawn(path, [path] + arguments, variables, descriptors)
        let number = pidfd_open(pid, 0)
        guard number >= 0 else {
            let failure = Failure.system("pidfd_open")
            Glibc.kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            throw failure
        }
        handle = Descriptor(owning: number)
    }

    deinit {
        guard status.withLock({ $0 }) == nil else { return }
        Glibc.kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }

    package func signal(_ number: Int32) {
        status.withLock { if $0 == nil { Glibc.kill(pid, number) } }
    }

    package var isRunning: Bool {
        get throws { try handle.wait(for: POLLIN, until: Deadline(.zero)) == 0 }
    }

    /// Waits for the end of the process. At the deadline the wait fails, and the process keeps running.
    @discardableResult
    package func waitForExit(until deadline: Deadline = Deadline()) throws -> ExitStatus {
        guard try handle.wait(for: POLLIN, until: deadline) != 0 else { throw Failure("process \(pid) does not end") }
        return try status.withLock { known in
            if let known { return known }
            var word: Int32 = 0
            guard waitpid(pid, &word, 0) == pid else { throw Failure.system("waitpid") }
            // The macros of <sys/wait.h>, which Swift does not import.
            let signal = word & 0x7F
            let ended = signal == 0 ? ExitStatus.exited(word >> 8 & 0xFF) : .killed(signal: signal)
            known = ended
            return ended
        }
    }

    /// The files of its descriptors, in no particular order: paths, or the kinds of files without a path.
    package var openFiles: [String] {
        get throws {
            try Files.names(in: "/proc/\(pid)/fd").compactMap { number in
                var target = [CChar](repeating: 0, count: 4096)
                let count = readlink("/proc/\(pid)/fd/\(number)", &target, target.count)
                guard count >= 0 else { return nil }
                // `socket:[1234]`: the number is different each time.
                let text = target[..<count].map(UInt8.init(bitPattern:)).prefix { $0 != UInt8(ascii: "[") }
                return String(decoding: text, as: UTF8.self)
            }
        }
    }

    /// The variables that every process needs, and none that would connect it to a daemon of this machine.
    package static var baseEnvironment: [String: String] {
        var environment = ["LC_ALL": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no"]
        for name in ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"] {
            if let value = getenv(name) { environment[name] = String(cString: value) }
        }
        return environment
    }

    private static func spawn(
        _ path: String, _ arguments: [String], _ environment: [String],
        _ descriptors: [(source: Descriptor, target: Int32)]
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        // Via numbers above every target, so that no target overwrites a source that is still needed.
        let sources = try descriptors.map { descriptor in
            let copy = fcntl(descriptor.source.number, F_DUPFD_CLOEXEC, 64)
            guard copy >= 0 else { throw Failure.system("fcntl F_DUPFD_CLOEXEC") }
            posix_spawn_file_actions_adddup2(&actions, copy, descriptor.target)
            return Descriptor(owning: copy)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        let argumentPointers = arguments.map { strdup($0) } + [nil]
        let environmentPointers = environment.map { strdup($0) } + [nil]
        defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, path, &actions, &attributes, argumentPointers, environmentPointers)
        withExtendedLifetime(sources) {}
        guard code == 0 else { throw Failure.system("posix_spawn \(path)", code) }
        return pid
    }
}
