import CRUDTestSupport
import Testing

/// Long items of formats other than JSON are decoded by a thread of their own, however short their stored form is.
@Suite(.serialized) struct DecodingTests {
    private static func configuration(_ backend: String) -> Configuration {
        let definition =
            switch backend {
            case "sqlite": "plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}"
            case "files": "plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}"
            case "child": "plugin: sqlite, isolation: process, options: {path: $DIRECTORY/main.sqlite}"
            default: "plugin: memory"
            }
        return Configuration(
            backends: "main: {\(definition)}", collections: #""*": {backend: main, format: plist}"#, loops: 1)
    }

    /// How often the thread has been executed.
    private static func executions(in daemon: Daemon) throws -> Int {
        let tasks = "/proc/\(daemon.process.pid)/task"
        let deadline = Deadline()
        // It is named when it begins.
        while !deadline.hasPassed {
            for task in try Files.names(in: tasks) {
                guard (try? Files.read("\(tasks)/\(task)/comm")) == Array("decoding\n".utf8) else { continue }
                let statistics = String(decoding: try Files.read("\(tasks)/\(task)/schedstat"), as: UTF8.self)
                let fields = statistics.split { $0 == " " || $0 == "\n" }
                return try #require(fields.count > 2 ? Int(fields[2]) : nil)
            }
        }
        throw Failure("the daemon has no such thread")
    }

    /// A text that is stored once, and makes the item long.
    private static func item(_ count: Int) -> String {
        let text = String(repeating: "x", count: 1000)
        return #"{"n":1,"list":["# + repeatElement("\"\(text)\"", count: count).joined(separator: ",") + "]}"
    }

    @Test(arguments: ["sqlite", "memory", "files", "child"], ["whole", "part", "several"])
    func decodesLongItems(backend: String, kind: String) throws {
        let daemon = try Daemon(Self.configuration(backend))
        let connection = try daemon.connect()
        let collection = "c"
        for (id, count, isLong) in [("short", 2, false), ("long", 500, true)] {
            let item = Self.item(count)
            #expect(try connection.create(collection, id, item).result != nil)
            let before = try Self.executions(in: daemon)
            let found: JSON?
            switch kind {
            case "whole": found = try connection.read(collection, id).result?["item"]
            case "part": found = try connection.read(collection, id, fields: #"["n"]"#).result?["item"]
            default: found = try connection.readMany(collection, [id]).result?["records"]?.elements?.first?["item"]
            }
            #expect(found?.text == (kind == "part" ? #"{"n":1}"# : item))
            let isDecodedThere = try Self.executions(in: daemon) > before
            #expect(isDecodedThere == isLong, "\(id)")
        }
        #expect(try daemon.stop() == .exited(0))
    }
}
