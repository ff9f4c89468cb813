import Glibc

/// A program that runs ``CrashWorkload/write(_:options:format:collection:from:)`` until it is killed.
package struct CrashWorkloadProgram: Sendable {
    /// How long it may take over a batch.
    private static let timeoutMilliseconds: Int32 = 30_000

    private let path: String
    private let arguments: [String]

    /// - Parameter arguments: what comes before options, format, collection and number.
    package init(path: String, arguments: [String]) {
        self.path = path
        self.arguments = arguments
    }

    /// Lets it write `count` batches behind those of `last`, and kills it.
    ///
    /// - Returns: what it was acknowledged before it died.
    func run(
        options: String, format: String, collection: String, after last: CrashWorkload.Progress, count: Int
    ) throws(CallError) -> CrashWorkload.Progress {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .violation("cannot create a pipe: \(Self.reason(errno))") }
        defer { close(ends[0]) }
        // The program dies of its next line when nobody can read it any more.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let child = try spawn([options, format, collection, "\(last.batch + 1)"], output: ends[1])
        close(ends[1])
        defer {
            Glibc.kill(child, SIGKILL)
            waitpid(child, nil, 0)
        }
        var lines = Lines(descriptor: ends[0])
        var acknowledged = last
        while acknowledged.batch < last.batch + count {
            guard let progress = lines.next().flatMap(CrashWorkload.Progress.init) else {
                throw .violation("the program that writes ended or hung by itself after batch \(acknowledged.batch)")
            }
            acknowledged = progress
        }
        Glibc.kill(child, SIGKILL)
        // What it wrote to the pipe before it died was acknowledged, too.
        while let progress = lines.next().flatMap(CrashWorkload.Progress.init) { acknowledged = progress }
        return acknowledged
    }

    private func spawn(_ words: [String], output: Int32) throws(CallError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        let pointers = ([path] + arguments + words).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, path, &actions, nil, pointers, environ)
        guard code == 0 else { throw .violation("cannot run \(path): \(Self.reason(code))") }
        return pid
    }

    private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }

    /// The lines of a pipe.
    private struct Lines {
        let descriptor: Int32
        private var received: [UInt8] = []

        init(descriptor: Int32) {
            self.descriptor = descriptor
        }

        /// Nil at the end, or when nothing comes in time.
        mutating func next() -> String? {
            while true {
                if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = String(decoding: received[..<end], as: UTF8.self)
                    received.removeSubrange(...end)
                    return line
                }
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&waiting, 1, CrashWorkloadProgram.timeoutMilliseconds) > 0 else { return nil }
                var chunk = [UInt8](repeating: 0, count: 4096)
                let count = read(descriptor, &chunk, chunk.count)
                guard count > 0 else { return nil }
                received += chunk[..<count]
            }
        }
    }
}
