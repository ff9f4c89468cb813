import CLinux
import Glibc
import Synchronization

/// A real PostgreSQL server on a Unix socket, with a directory of its own. It ends when the last reference to it is
/// gone, or the process of the tests.
package final class PostgreSQLServer: Sendable {
    package let directory: TemporaryDirectory
    /// Such as `a`, for servers that replicate each other.
    package let port: Int
    private let environment: [String: String]
    private let process = Mutex<Running?>(nil)

    private struct Running: Sendable {
        let shell: ChildProcess
        /// The server ends when this is closed, however that comes about.
        let lifeline: Descriptor
    }

    static let user = "postgres"

    /// In memory where there is enough of it: what the server syncs for other tests is not to slow them down, and none
    /// of them cuts the power.
    static var parent: String? {
        var status = statvfs()
        guard statvfs("/dev/shm", &status) == 0, status.f_bavail * status.f_frsize > 2 << 30 else { return nil }
        return "/dev/shm"
    }

    /// Makes a new cluster and starts it.
    ///
    /// - Parameter environment: of the server, in addition to what every process needs.
    package convenience init(settings: [String: String] = [:], environment: [String: String] = [:]) throws {
        try self.init(in: TemporaryDirectory(in: Self.parent), port: 5432, environment: environment)
        try initialize(["--no-sync"])
        try start(settings: settings)
    }

    /// - Parameters:
    ///   - directory: where its sockets are, and its data in a directory by its port.
    ///   - port: tells the servers of a directory apart.
    ///   - environment: of the server, in addition to what every process needs.
    package init(in directory: TemporaryDirectory, port: Int, environment: [String: String] = [:]) throws {
        self.directory = directory
        self.port = port
        self.environment = environment
        try Self.give(directory.path)
    }

    deinit {
        try? stop()
    }

    package var data: String { "\(directory.path)/\(port)" }

    /// What a backend connects with.
    package var connection: String { "host=\(directory.path) port=\(port) dbname=postgres user=crudd" }

    // MARK: Life

    /// Makes a new cluster.
    package func initialize(_ options: [String] = []) throws {
        try runTool("initdb", ["-D", data, "-U", "crudd", "--auth=trust", "-E", "UTF8", "--locale=C"] + options)
    }

    package func start(settings: [String: String] = [:], until deadline: Deadline = Deadline()) throws {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Failure.system("socketpair")
        }
        let (input, lifeline) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
        let log = Descriptor(owning: open("\(directory.path)/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644))
        var arguments = ["-D", data, "-k", directory.path, "-p", "\(port)", "-c", "listen_addresses="]
        for (name, value) in settings { arguments += ["-c", "\(name)=\(value)"] }
        let (program, words) = try Self.command("postgres", arguments)
        // Tests that end, however they do, leave nothing behind.
        let script = """
            "$0" "$@" < /dev/null & server=$!; read line; kill -QUIT $server 2> /dev/null; wait $server
            kill -0 \(getpid()) 2> /dev/null || rm -rf \(directory.path)
            """
        let shell = try ChildProcess(
            "sh", ["-c", script, program] + words, environment: environment,
            descriptors: [(input, STDIN_FILENO), (log, STDOUT_FILENO), (log, STDERR_FILENO)])
        process.withLock { $0 = Running(shell: shell, lifeline: lifeline) }
        while try query("SELECT 1") == nil {
            guard !deadline.hasPassed, try shell.isRunning else {
                throw Failure("PostgreSQL does not start\n\(self.log)")
            }
            poll(nil, 0, 20)
        }
    }

    /// Ends it at once, as a crash would, and waits for that.
    package func stop() throws {
        // With the last reference the lifeline is closed.
        guard let shell = process.withLock({ $0.take()?.shell }) else { return }
        try shell.waitForExit()
    }

    /// Kills the postmaster with SIGKILL and waits for the end of all of its processes.
    package func kill() throws {
        let children = try children
        signal(SIGKILL)
        let deadline = Deadline()
        for pid in children {
            while Glibc.kill(pid, 0) == 0, Self.parent(of: pid) != nil {
                guard !deadline.hasPassed else { throw Failure("process \(pid) of PostgreSQL does not end") }
                poll(nil, 0, 5)
            }
        }
        try stop()
    }

    /// Freezes all of its processes with SIGSTOP.
    ///
    /// - Returns: what continues them.
    package func freeze() throws -> @Sendable () -> Void {
        guard let postmaster else { throw Failure("the server does not run") }
        signal(SIGSTOP)
        let processes = try children + [postmaster]
        for pid in processes { Glibc.kill(pid, SIGSTOP) }
        return { for pid in processes { Glibc.kill(pid, SIGCONT) } }
    }

    private var children: [Int32] {
        get throws {
            let postmaster = postmaster
            return try Files.names(in: "/proc").compactMap { Int32($0) }.filter { Self.parent(of: $0) == postmaster }
        }
    }

    package func signal(_ number: Int32) {
        if let postmaster { Glibc.kill(postmaster, number) }
    }

    private var postmaster: Int32? {
        (try? Files.read("\(data)/postmaster.pid")).flatMap { bytes in
            Int32(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
        }
    }

    private static func parent(of pid: Int32) -> Int32? {
        guard let stat = try? Files.read("/proc/\(pid)/stat") else { return nil }
        let fields = String(decoding: stat, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
        return fields.count > 1 && fields[0] != "Z" ? Int32(fields[1]) : nil
    }

    private var log: String {
        (try? Files.read("\(directory.path)/log")).map { String(decoding: $0.suffix(4000), as: UTF8.self) } ?? ""
    }

    // MARK: Tools

    /// Runs SQL with `psql`.
    ///
    /// - Returns: the values of the rows, a line each; nil if it failed.
    package func query(_ sql: String) throws -> String? {
        let outcome = try Command.run(
            Self.program("psql"), ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", connection, "-c", sql])
        return outcome.status == .exited(0) ? String(outcome.output.dropLast()) : nil
    }

    /// Runs a program of PostgreSQL as the server's user.
    package func runTool(_ name: String, _ arguments: [String]) throws {
        let (program, words) = try Self.command(name, arguments)
        let outcome = try Command.run(program, words)
        guard outcome.status == .exited(0) else { throw Failure("\(name): \(outcome.errors)\(outcome.output)") }
    }

    /// The server refuses to run as root.
    private static func command(_ name: String, _ arguments: [String]) throws -> (program: String, arguments: [String])
    {
        let program = try program(name)
        if geteuid() != 0 { return (program, arguments) }
        return ("setpriv", ["--reuid", user, "--regid", user, "--clear-groups", "--", program] + arguments)
    }

    private static func program(_ name: String) throws -> String { "\(try programs)/\(name)" }

    /// The directory of PostgreSQL's programs: what the environment says, or that of the newest version of Debian's.
    static var programs: String {
        get throws {
            if let directory = getenv("CRUDD_POSTGRESQL") { return String(cString: directory) }
            let root = "/usr/lib/postgresql"
            let versions = ((try? Files.names(in: root)) ?? []).compactMap { Int($0) }
            guard let newest = versions.max() else { throw Failure("PostgreSQL is not installed") }
            return "\(root)/\(newest)/bin"
        }
    }

    private static func give(_ path: String) throws {
        guard geteuid() == 0 else { return }
        guard let entry = getpwnam(user) else { throw Failure("there is no user \(user)") }
        guard chown(path, entry.pointee.pw_uid, entry.pointee.pw_gid) == 0 else { throw Failure.system("chown") }
    }
}

extension PostgreSQLServer {
    private static let sharedServer = Mutex<PostgreSQLServer?>(nil)

    /// One for all tests of the process that do not disturb it; each uses a schema of its own.
    package static func shared() throws -> PostgreSQLServer {
        try sharedServer.withLock { server in
            if let server { return server }
            let new = try PostgreSQLServer(settings: ["max_connections": "400"])
            server = new
            return new
        }
    }

    /// The options of a backend, as YAML: a schema of the shared server.
    ///
    /// - Parameter name: the schema's, within those of the installation.
    package static func options(_ name: String) -> String {
        // Without a server the backend is down, and says why.
        let connection = (try? shared().connection) ?? "host=/nonexistent"
        return "{connection: \"\(connection)\", schema: \"$DIRECTORY \(name)\"}"
    }
}
