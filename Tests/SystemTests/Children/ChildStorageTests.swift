import CRUDTestSupport
import Glibc
import Testing

/// The storage of a child that is started again: it must be the one that was served before.
@Suite struct ChildStorageTests {
    private static func move(_ names: [String], from source: String, to target: String) throws {
        for name in names where rename("\(source)/\(name)", "\(target)/\(name)") != 0 {
            throw Failure.system("rename \(name)")
        }
    }

    /// Files that are gone are not replaced by an empty database, whose records would be none.
    @Test(arguments: ["sqlite", "store"])
    func aNewOneIsNotServed(backend: String) throws {
        let child = try ChildDaemon([backend])
        let (folder, connection) = (child.daemon.installation.path, try child.daemon.connect())
        #expect(try connection.create(backend, "a", "1").result != nil)
        let old = try ChildDaemon.status(of: backend, connection)
        let database = backend == "sqlite" ? "child.sqlite" : "store.db"
        let files = try Files.names(in: folder).filter { $0.hasPrefix(database) && !$0.hasSuffix("-lock") }
        try Files.makeDirectory("\(folder)/away")
        try Self.move(files, from: folder, to: "\(folder)/away")
        #expect(kill(try #require(old.pid), SIGKILL) == 0)
        let deadline = Deadline()
        var status = try ChildDaemon.status(of: backend, connection)
        while status.lastError?.contains("storage") != true {
            try #require(!deadline.hasPassed, "\(status.json)")
            status = try ChildDaemon.status(of: backend, connection)
            #expect(try connection.read(backend, "a").error?.name != "record_not_found")
        }
        #expect(try connection.create(backend, "b", "1").error?.name == "unavailable")

        for name in try Files.names(in: folder) where name.hasPrefix(database) && !name.hasSuffix("-lock") {
            Files.remove("\(folder)/\(name)")
        }
        try Self.move(files, from: "\(folder)/away", to: folder)
        try ChildDaemon.awaitReady(backend, notWith: old.pid, connection)
        #expect(try connection.item(backend, "a") == "1")
        #expect(try connection.exists(backend, "b") == false)
    }
}
