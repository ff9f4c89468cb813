import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import Testing

/// The log must not grow with what is written, whatever readers do.
@Suite struct WriteAheadLogTests {
    private static let bound = 64 << 20

    private let directory: TemporaryDirectory
    private let path: String
    private let backend: PluginBackend
    private let clients: PluginCollection
    private let item = String(repeating: "x", count: 4000)

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
        backend = try PluginBackend(path: path, synchronous: "normal")
        clients = try backend.open("clients")
    }

    private var logBytes: Int {
        Files.status("\(path)-wal").map { Int($0.st_size) } ?? 0
    }

    /// Writes 150 MiB and returns how long the log was at most.
    private func writeMuch(_ round: Int = 0, between: () throws -> Void = {}) throws -> Int {
        var longest = 0
        for batch in 0..<180 {
            _ = try backend.write((0..<200).map { .put("\(round).\(batch).\($0)", item, in: clients) })
            longest = max(longest, logBytes)
            try between()
        }
        return longest
    }

    @Test func staysShortBesideAReaderThatNeverReleasesItsSnapshot() throws {
        let reader = try backend.reader()
        #expect(try reader.count(clients) == 0)
        #expect(try writeMuch() < Self.bound)
        #expect(try reader.scan(clients, limit: 10).count == 10)
    }

    @Test func staysShortBesideBusyReaders() throws {
        let readers = try (0..<3).map { _ in try backend.reader() }
        let longest = try writeMuch {
            for (index, reader) in readers.enumerated() {
                _ = try reader.read(["0.0.\(index)"], in: clients)
                if index == 0 { reader.endSnapshot() }
            }
        }
        #expect(longest < Self.bound)
    }

    /// What copies the log waits for the call of a reader, and the writer does not.
    @Test func isCopiedWhileTheWriterContinues() throws {
        _ = try backend.write([.put("a", "1", in: clients)])
        var batches = 0
        var failures = 0
        _ = try backend.reader().scan(clients, limit: 1, withItems: false) {
            while logBytes < 50 << 20, batches < 180, failures == 0 {
                do {
                    _ = try backend.write((0..<100).map { .put("\(batches).\($0)", item, in: clients) })
                    batches += 1
                } catch { failures += 1 }
            }
        }
        #expect(failures == 0)
        #expect(logBytes >= 50 << 20, "the writer has continued after the checkpoint was due")
        #expect(try writeMuch(1) < Self.bound)
        #expect(try backend.reader().count(clients) == 1 + 100 * batches + 200 * 180)
    }

    @Test func recoversFromATransactionOfAnotherProcess() throws {
        _ = try backend.write([.put("a", "1", in: clients)])
        do {
            let inspector = try Inspector(path)
            try inspector.execute("BEGIN")
            #expect(try inspector.rows("SELECT count(*) FROM clients") == [["1"]])
            #expect(try writeMuch() > Self.bound, "nothing can be done about it")
            #expect(backend.logged.filter { $0.contains("write-ahead log has grown") }.count == 1)
        }
        _ = try writeMuch(1)
        #expect(logBytes < Self.bound)
    }

    @Test func isCopiedWhileNothingIsWritten() throws {
        for batch in 0..<10 {
            _ = try backend.write((0..<200).map { .put("\(batch).\($0)", item, in: clients) })
        }
        #expect((try? countWithoutLog()) != [["2000"]])
        backend.idle()
        #expect(try countWithoutLog() == [["2000"]])
        backend.idle()
    }

    /// How many records the database file has by itself.
    private func countWithoutLog() throws -> [[String]] {
        try Files.copy(path, to: "\(path)-copy", mode: 0o600)
        return try Inspector("\(path)-copy").rows("SELECT count(*) FROM clients")
    }
}
