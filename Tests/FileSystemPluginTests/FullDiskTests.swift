import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// Writes that the file system refuses. Root alone may mount one that is small or read-only.
@Suite(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
final class FullDiskTests {
    private let parent: TemporaryDirectory
    private let plugin: ExportedPlugin

    init() throws {
        parent = try TemporaryDirectory()
        plugin = try ExportedPlugin("filesystem")
        try run("/usr/bin/mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "crudd-test", parent.path)
    }

    deinit {
        _ = try? Command.run("/usr/bin/umount", ["--lazy", parent.path])
    }

    private func run(_ program: String, _ arguments: String...) throws {
        let outcome = try Command.run(program, arguments)
        guard outcome.status == .exited(0) else { throw Failure("\(program): \(outcome.errors)") }
    }

    private func open() throws(CallError) -> PluginBackend {
        try PluginBackend(plugin, options: #"{"directory": "\#(parent.path)"}"#)
    }

    @Test func saysThatTheDiskIsFull() throws {
        let backend = try open()
        let collection = try backend.open("clients")
        let small = String(repeating: "x", count: 10_000)
        let large = String(repeating: "y", count: 300_000)
        let outcomes = try backend.write([
            .put("a", small, revision: "1", in: collection), .put("b", large, in: collection),
            .put("a", large, revision: "2", in: collection), .put("c", small, in: collection),
        ])
        #expect(outcomes == [.created, .noSpace, .noSpace, .created])
        let reader = try backend.reader()
        #expect(try reader.scan(collection) == [PluginRecord("a", small), PluginRecord("c", small)])
        #expect(try Files.names(in: "\(parent.path)/clients").sorted() == ["item_a.json", "item_c.json"])
        #expect(backend.logged.count == 1)
    }

    @Test func saysThatItCannotWriteNow() throws {
        let backend = try open()
        let collection = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: collection)])
        try run("/usr/bin/mount", "-o", "remount,ro", parent.path)
        let outcomes = try backend.write([.put("a", "2", in: collection), .remove("a", in: collection)])
        #expect(outcomes == [.refused(CRUDD_UNAVAILABLE), .refused(CRUDD_UNAVAILABLE)])
        #expect(try backend.reader().read("a", in: collection) == PluginRecord("a", "1"))
    }
}
