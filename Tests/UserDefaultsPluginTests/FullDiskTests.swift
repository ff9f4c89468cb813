import CRUDTestSupport
import Glibc
import Testing

/// Writes that the file system refuses. Root alone may mount one that is small or read-only.
@Suite(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
final class FullDiskTests {
    private let parent: TemporaryDirectory
    private let suite: SuiteDaemon

    init() throws {
        parent = try TemporaryDirectory()
        suite = try SuiteDaemon(home: parent.path)
        try run("/usr/bin/mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "crudd-test", parent.path)
    }

    deinit {
        try? suite.kill()
        _ = try? Command.run("/usr/bin/umount", ["--lazy", parent.path])
    }

    private func run(_ program: String, _ arguments: String...) throws {
        let outcome = try Command.run(program, arguments)
        guard outcome.status == .exited(0) else { throw Failure("\(program): \(outcome.errors)") }
    }

    private static func text(_ bytes: Int) -> String { "\"\(String(repeating: "x", count: bytes))\"" }

    /// What does not fit is refused whole, and everything before is still there, in memory as on disk.
    @Test func saysThatTheDiskIsFull() throws {
        var connection = try suite.start()
        #expect(try connection.create("c", "small", "1").result != nil)
        #expect(try connection.create("c", "kept", Self.text(40_000)).result != nil)
        for _ in 0..<3 {
            #expect(try connection.create("c", "large", Self.text(200_000)).error?.name == "no_space")
            #expect(try connection.update("c", "small", Self.text(200_000)).error?.name == "no_space")
            #expect(try connection.item("c", "large") == nil)
            #expect(try connection.item("c", "small") == "1")
            #expect(try connection.item("c", "kept") == Self.text(40_000))
            #expect(try suite.list()["database_c_item_small"] as? String == "1")
        }
        #expect(try connection.update("c", "small", "2").result != nil)
        #expect(try connection.delete("c", "kept").result != nil)
        try suite.kill()
        connection = try suite.start()
        #expect(try connection.item("c", "small") == "2")
        #expect(try connection.item("c", "kept") == nil)
        #expect(try connection.item("c", "large") == nil)
    }

    @Test func saysThatItCannotWriteNow() throws {
        let connection = try suite.start()
        #expect(try connection.create("c", "a", "1").result != nil)
        try run("/usr/bin/mount", "-o", "remount,ro", parent.path)
        #expect(try connection.update("c", "a", "2").error?.name == "unavailable")
        #expect(try connection.create("c", "b", "1").error?.name == "unavailable")
        #expect(try connection.delete("c", "a").error?.name == "unavailable")
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.item("c", "b") == nil)
        try run("/usr/bin/mount", "-o", "remount,rw", parent.path)
        #expect(try connection.update("c", "a", "3").result != nil)
        #expect(try suite.list()["database_c_item_a"] as? String == "3")
    }

    @Test func opensOnceTheDirectoryCanBeWritten() throws {
        try run("/usr/bin/mount", "-o", "remount,ro", parent.path)
        let connection = try suite.start()
        #expect(try connection.create("c", "a", "1").error?.name == "unavailable")
        try run("/usr/bin/mount", "-o", "remount,rw", parent.path)
        let deadline = Deadline()
        while try connection.upsert("c", "a", "1").result == nil {
            try #require(!deadline.hasPassed, "the backend does not come back")
        }
    }
}
