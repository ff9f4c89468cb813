import CRUDClient
import Glibc

/// Another program with the same standard output and errors.
struct SpawnedProgram {
    private let pid: pid_t

    /// Starts it, with the signals of the keyboard as they usually are.
    ///
    /// - Parameters:
    ///   - path: the file; a name without a slash is searched for in `$PATH`.
    ///   - words: the first one is its name.
    ///   - input: its standard input; nil: that of this program.
    ///   - output: its standard output; nil: that of this program.
    /// - Throws: ``CRUDError`` with `unavailable` if it cannot be run.
    init(_ path: String, _ words: [String], input: Int32? = nil, output: Int32? = nil) throws {
        // The copies live until the program has been started.
        let copies = unsafe words.map { strdup($0) } + [nil]
        defer { for word in unsafe copies { unsafe free(word) } }
        var actions = posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if let input { unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) }
        if let output { unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGQUIT, SIGPIPE] { sigaddset(&signals, signal) }
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        var pid: pid_t = 0
        errno = unsafe posix_spawnp(&pid, path, &actions, &attributes, copies, environ)
        guard errno == 0 else { throw CRUDError(.unavailable, "cannot run \(path): \(ErrorNumber.message)") }
        self.pid = pid
    }

    /// Makes a pipe that no other program gets by itself: what is written into `input` is read from `output`.
    static func pipe() -> (output: Int32, input: Int32)? {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// Waits until it exits, and returns its status as waitpid(2) describes it.
    func wait() -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
