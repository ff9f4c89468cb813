import CRUDTestSupport
import Glibc
import Testing

/// `backend.backup`.
@Suite struct BackupTests {
    private static func daemon(isolation: String = "inline") throws -> Daemon {
        try Daemon(
            Configuration(
                backends: """
                    main: {plugin: sqlite, isolation: \(isolation), options: {path: $DIRECTORY/main.sqlite}}
                    memory: {plugin: memory}
                    child: {plugin: memory, isolation: process}
                    files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
                    script: {command: [$DIRECTORY/store.py], options: {path: $DIRECTORY/store.db}}
                    """,
                collections: """
                    "m*": {backend: memory}
                    "*": {backend: main, changes: true}
                    """, loops: 1))
    }

    private static func params(_ directory: String, backend: String = "main") -> String {
        #"{"backend":"\#(backend)","directory":"\#(directory)"}"#
    }

    private static func makeDirectory(of daemon: Daemon, _ name: String = "backups") throws -> String {
        let path = "\(daemon.installation.path)/\(name)"
        try Files.makeDirectory(path, mode: 0o700)
        return path
    }

    /// Stores so many records of some 4 kB.
    private static func fill(_ connection: Connection, _ count: Int) throws {
        let padding = String(repeating: "x", count: 4000)
        for start in stride(from: 0, to: count, by: 250) {
            let operations = (start..<min(start + 250, count)).map {
                #"{"op":"create","collection":"big","id":"\#($0)","item":"\#(padding)"}"#
            }
            let params = #"{"operations":[\#(operations.joined(separator: ","))],"atomic":true}"#
            #expect(try connection.call("record.batch", params).result != nil)
        }
    }

    /// Writes one record into each of two collections by an atomic batch.
    private static func writePair(_ connection: Connection, _ id: String) throws {
        let operations = ["left", "right"].map {
            #"{"op":"create","collection":"\#($0)","id":"\#(id)","item":1}"#
        }
        let params = #"{"operations":[\#(operations.joined(separator: ","))],"atomic":true}"#
        #expect(try connection.call("record.batch", params).result != nil)
    }

    @Test(arguments: ["inline", "process"])
    func isACopyOfOneMomentThatIsMadeBesideWrites(isolation: String) throws {
        let daemon = try Self.daemon(isolation: isolation)
        let directory = try Self.makeDirectory(of: daemon)
        let writer = try daemon.connect()
        try Self.fill(writer, 10_000)
        for number in 0..<10 { try Self.writePair(writer, "before \(number)") }
        let admin = try daemon.connect()
        try admin.sendFrame(Connection.request("backend.backup", Self.params(directory), id: "1"))
        var pairs = 0
        let other = try daemon.connect()
        while try !admin.hasSomethingToRead() {
            try Self.writePair(writer, "later \(pairs)")
            #expect(try other.read("big", "\(pairs % 10_000)").result != nil)
            pairs += 1
        }
        let result = try #require(try admin.receive().result, "\(daemon.log)")
        let path = try #require(result["path"]?.string)
        #expect(pairs > 0, "reads and writes continue")
        #expect(path.hasPrefix("\(directory)/main-2") && path.hasSuffix("Z.sqlite"))
        #expect(try Files.names(in: directory) == [String(path.dropFirst(directory.count + 1))])
        let status = try #require(Files.status(path))
        #expect(status.st_mode & 0o7777 == 0o600)
        #expect(result["bytes"]?.text == "\(status.st_size)")

        // The copy in the place of the storage, as somebody restores it.
        try daemon.stop()
        for suffix in ["", "-wal", "-shm"] { Files.remove("\(daemon.installation.path)/main.sqlite\(suffix)") }
        try Files.copy(path, to: "\(daemon.installation.path)/main.sqlite", mode: 0o600)
        let restored = try daemon.restarted()
        let reader = try restored.connect()
        #expect(try SQLiteDatabase.value("PRAGMA integrity_check", in: path) == "ok")
        #expect(try reader.call("record.count", #"{"collection":"big"}"#).result?["count"]?.text == "10000")
        let counts = try ["left", "right"].map {
            try #require(try reader.call("record.count", #"{"collection":"\#($0)"}"#).result?["count"]?.text)
        }
        #expect(counts[0] == counts[1], "a batch is there as a whole or not at all")
        #expect(try #require(Int(counts[0])) >= 10, "what was acknowledged before is there")
        #expect(try reader.create("left", "new", "1").result != nil)
        #expect(daemon.log.contains(#"backend.backup of backend main in "\#(directory)": ok"#))
    }

    @Test func refusesWhatItCannotDo() throws {
        let daemon = try Self.daemon()
        let connection = try daemon.connect()
        let directory = try Self.makeDirectory(of: daemon)
        let shared = try Self.makeDirectory(of: daemon, "shared")
        try Files.setMode(0o1777, of: shared)
        let inner = try Self.makeDirectory(of: daemon, "shared/inner")
        let open = try Self.makeDirectory(of: daemon, "open")
        let innermost = try Self.makeDirectory(of: daemon, "open/inner")
        try Files.setMode(0o777, of: open)
        let link = "\(daemon.installation.path)/link"
        #expect(symlink(directory, link) == 0)
        let refused = [
            ("backups", "absolute path"), ("\(directory)/../backups", #"without ".."#), ("", "absolute path"),
            ("\(directory)/none", "finds no directory"), (link, "symbolic link"), ("\(link)/x", "symbolic link"),
            (daemon.installation.configurationFile, "no directory"), (shared, "others may write"),
            ("\(shared)/.", "others may write"), ("\(link)/.", "symbolic link"),
            (innermost, "others may write"), ("\(directory)\\u0000", "absolute path"),
        ]
        for (path, reason) in refused {
            let error = try #require(try connection.call("backend.backup", Self.params(path)).error, "\(path)")
            #expect(error.name == "invalid_params")
            #expect(error.details?["member"]?.string == "directory")
            #expect(error.message.contains(reason), "\(path): \(error.message)")
        }
        let missing = try #require(try connection.call("backend.backup", Self.params(directory, backend: "x")).error)
        #expect(missing.details?["member"]?.string == "backend")
        let advice = [
            ("memory", "use crudctl dump, or stop"), ("child", "use crudctl dump, or stop"),
            ("files", "copy its directory"), ("script", "makes no backups: use crudctl dump"),
        ]
        for (backend, text) in advice {
            let params = Self.params(directory, backend: backend)
            var error = try #require(try connection.call("backend.backup", params).error)
            // A child that is not ready yet is not available.
            let deadline = Deadline()
            while error.name == "unavailable", !deadline.hasPassed {
                usleep(20_000)
                error = try #require(try connection.call("backend.backup", params).error)
            }
            #expect(error.name == "unsupported" && error.message.contains(text), "\(error.message)")
        }
        #expect(try Files.names(in: directory) == [])
        // Others may write to the directory above, which is sticky.
        #expect(try connection.call("backend.backup", Self.params(inner)).result != nil)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
    func aFullDiskLeavesNothing() throws {
        let daemon = try Self.daemon()
        let connection = try daemon.connect()
        try Self.fill(connection, 1000)
        let directory = try Self.makeDirectory(of: daemon)
        let mount = try Command.run("mount", ["-t", "tmpfs", "-o", "size=1m,mode=0700", "crudd-test", directory])
        #expect(mount.status == .exited(0))
        defer { _ = try? Command.run("umount", ["--lazy", directory]) }
        let error = try #require(try connection.call("backend.backup", Self.params(directory)).error)
        #expect(error.name == "no_space")
        #expect(try Files.names(in: directory) == [])
        #expect(try connection.create("c", "a", "1").result != nil)
    }

    /// The child is stopped while the requests come in, so that both backups are begun before one is complete.
    @Test func thereIsOneAtATimeAndItEndsWithItsConnection() throws {
        let daemon = try Self.daemon(isolation: "process")
        let admin = try daemon.connect()
        try Self.fill(admin, 10_000)
        let names = ["first", "second", "third"]
        let directories = try names.map { (name: String) in try Self.makeDirectory(of: daemon, name) }
        let list = try #require(try admin.call("backend.list").result?["backends"]?.elements)
        let main = try #require(list.first { $0["name"]?.string == "main" })
        let text = try #require(main["pid"]?.text)
        let child = try #require(pid_t(text))

        #expect(Glibc.kill(child, SIGSTOP) == 0)
        let connections = try directories.prefix(2).map { directory in
            let connection = try daemon.connect()
            try connection.sendFrame(Connection.request("backend.backup", Self.params(directory), id: "1"))
            return connection
        }
        // Both have been accepted, and their threads have made the files.
        let deadline = Deadline()
        while try directories.prefix(2).contains(where: { (path: String) in try Files.names(in: path).isEmpty }) {
            try #require(!deadline.hasPassed)
            usleep(1000)
        }
        #expect(Glibc.kill(child, SIGCONT) == 0)
        let replies = try connections.map { try $0.receive() }
        #expect(replies.compactMap { $0.error?.name } == ["unavailable"], "\(replies)")
        #expect(replies.count { $0.result != nil } == 1)

        #expect(Glibc.kill(child, SIGSTOP) == 0)
        let gone = try daemon.connect()
        try gone.sendFrame(Connection.request("backend.backup", Self.params(directories[2]), id: "1"))
        while try Files.names(in: directories[2]).isEmpty {
            try #require(!deadline.hasPassed)
            usleep(1000)
        }
        gone.close()
        while try admin.call("session.list").result?["sessions"]?.elements?.count != 3 {
            try #require(!deadline.hasPassed)
            usleep(1000)
        }
        #expect(Glibc.kill(child, SIGCONT) == 0)
        while try !Files.names(in: directories[2]).isEmpty {
            try #require(!deadline.hasPassed)
            usleep(1000)
        }
        #expect(try admin.create("c", "a", "1").result != nil)
        try daemon.stop()
        #expect(daemon.log.contains("unavailable"))
    }

    /// The child is stopped while the daemon is asked to end, so that there is a backup then.
    @Test func aDaemonThatEndsCancelsIt() throws {
        let daemon = try Self.daemon(isolation: "process")
        let connection = try daemon.connect()
        try Self.fill(connection, 10_000)
        let directory = try Self.makeDirectory(of: daemon)
        let list = try #require(try connection.call("backend.list").result?["backends"]?.elements)
        let main = try #require(list.first { $0["name"]?.string == "main" })
        let text = try #require(main["pid"]?.text)
        let child = try #require(pid_t(text))
        #expect(Glibc.kill(child, SIGSTOP) == 0)
        try connection.sendFrame(Connection.request("backend.backup", Self.params(directory), id: "1"))
        let deadline = Deadline()
        while try Files.names(in: directory).isEmpty {
            try #require(!deadline.hasPassed)
            usleep(1000)
        }
        let probe = try daemon.connect()
        #expect(try probe.isUsable())
        daemon.process.signal(SIGTERM)
        while try probe.call("daemon.ping").result != nil {
            try #require(!deadline.hasPassed)
            usleep(1000)
        }
        #expect(Glibc.kill(child, SIGCONT) == 0)
        let error = try #require(try connection.receive().error)
        #expect(error.name == "unavailable" && error.message.contains("shutting down"), "\(error.message)")
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(try Files.names(in: directory) == [])
    }

    @Test func aKilledDaemonLeavesNothingUnderTheFinalName() throws {
        let disk = try FaultyDisk()
        let installation = try Installation()
        let daemon = try Daemon(on: installation, environment: disk.variables)
        let directory = try Self.makeDirectory(of: daemon)
        let connection = try daemon.connect()
        try Self.fill(connection, 2000)
        try disk.kill(atCall: 1, of: ".partial")
        #expect(throws: (any Error).self) { try connection.call("backend.backup", Self.params(directory)) }
        let names = try Files.names(in: directory)
        #expect(names.count == 1 && names.allSatisfy { $0.hasPrefix(".") && $0.hasSuffix(".partial") }, "\(names)")
        try disk.heal()
        let again = try daemon.restarted().connect()
        #expect(try again.call("backend.backup", Self.params(directory)).result != nil)
        let rest = try Files.names(in: directory)
        #expect(rest.count == 1 && rest.allSatisfy { $0.hasPrefix("main-") }, "\(rest)")
    }
}
