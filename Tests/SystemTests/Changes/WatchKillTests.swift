import CRUDTestSupport
import Glibc
import Testing

/// `crudctl watch --cursor-file` that is killed again and again, and continues.
@Suite struct WatchKillTests {
    @Test func nothingIsMissed() throws {
        let daemon = try Daemon(ChangesTests.configuration())
        let connection = try daemon.connect()
        let directory = try TemporaryDirectory()
        let output = "\(directory.path)/output"
        let file = Descriptor(owning: open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644))
        var random = SeededGenerator(seed: 3)
        let deadline = Deadline()
        for round in 0..<6 {
            let isLast = round == 5
            let writes = (0..<400).map { _ in
                let id = "\(random.next() % 1500)"
                let params = Connection.params("sqlite", id, item: isLast || random.next() % 3 > 0 ? "\(round)" : nil)
                return (params.contains("item") ? "record.upsert" : "record.delete", params)
            }
            _ = try connection.pipeline(writes)
            let cursor = "\(directory.path)/cursor"
            let place = try? Files.read(cursor)
            // What was cut off is printed again. Whoever begins at the start again is not told of what was deleted
            // before.
            try Files.write(place == nil ? [] : Array(Self.lines(printedIn: output)), to: output)
            let before = try Files.read(output).count
            // One that is killed at any moment until it has noted where it is; in the end, when it has printed all.
            let target = Int(random.next() % 20_000)
            let watch = try ChildProcess(
                BuildProducts.path(of: "crudctl"),
                ["watch", "sqlite", "--cursor-file", cursor, "--socket", daemon.socketPath],
                descriptors: [(file, STDOUT_FILENO)])
            let there = isLast ? try Self.records(connection) : [:]
            var isOver = false
            while !isOver {
                try #require(!deadline.hasPassed, "watch has not printed what has changed")
                isOver =
                    try isLast
                    ? Self.state(printedIn: output) == there
                    : Files.read(output).count - before > target || (try? Files.read(cursor)) != place
            }
            watch.signal(SIGKILL)
            #expect(try watch.waitForExit() == .killed(signal: SIGKILL))
        }
    }

    /// The lines that are complete: a process may be killed in the midst of one.
    private static func lines(printedIn path: String) throws -> ArraySlice<UInt8> {
        let bytes = try Files.read(path)
        return bytes[..<(bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0)]
    }

    /// The revisions of the records that a reader of the lines knows.
    private static func state(printedIn path: String) throws -> [String: String] {
        var state: [String: String] = [:]
        for line in try lines(printedIn: path).split(separator: UInt8(ascii: "\n")) {
            let change = try JSON(parsing: Array(line))
            guard let id = change["id"]?.string else { continue }
            state[id] = change["revision"]?.string
        }
        return state
    }

    private static func records(_ connection: Connection) throws -> [String: String] {
        let reply = try connection.call("record.query", #"{"collection":"sqlite","limit":10000}"#)
        var records: [String: String] = [:]
        for record in reply.result?["records"]?.elements ?? [] {
            records[record["id"]?.string ?? ""] = record["revision"]?.string
        }
        return records
    }
}
