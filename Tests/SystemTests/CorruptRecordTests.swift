import CRUDTestSupport
import Testing

/// Records whose stored bytes cannot be decoded are errors of their own.
@Suite struct CorruptRecordTests {
    private static let filter = #"{"op":">=","args":[{"property":"n"},0]}"#

    /// `files/notes` with records of which the one with id b is corrupt.
    private func daemon(format: String, _ isolation: String) throws -> Daemon {
        let daemon = try Daemon(
            Configuration(
                backends: """
                    files: {plugin: filesystem, isolation: \(isolation), options: {directory: $DIRECTORY/files}}
                    """, collections: #""*": {backend: files, format: \#(format)}"#))
        let connection = try daemon.connect()
        for (number, id) in ["a", "b", "c"].enumerated() {
            #expect(try connection.create("notes", id, #"{"n":\#(number)}"#).result != nil)
        }
        try Files.write("{oops", to: "\(daemon.installation.path)/files/notes/item_b.\(format)")
        return daemon
    }

    private func call(_ connection: Connection, _ method: String, _ more: String = "") throws -> Reply {
        try connection.call(method, #"{"collection":"notes"\#(more)}"#)
    }

    @Test(arguments: ["json", "xml"], ["inline", "process"])
    func areLeftOutAndNamed(format: String, isolation: String) throws {
        let daemon = try daemon(format: format, isolation)
        let connection = try daemon.connect()
        for _ in 0..<2 {
            #expect(try connection.read("notes", "b").error?.name == "corrupt")
            let many = try connection.readMany("notes", ["a", "b", "c", "d"]).result
            #expect(many?["records"]?.elements?.count == 2 && many?["missing"]?.text == #"["d"]"#)
            #expect(many?["corrupt"]?.text == #"["b"]"#)
            let query = try call(connection, "record.query", #","filter":\#(Self.filter)"#).result
            #expect(query?["records"]?.elements?.compactMap { $0["id"]?.string } == ["a", "c"])
            #expect(query?["corrupt"]?.text == #"["b"]"#)
            let count = try call(connection, "record.count", #","filter":\#(Self.filter)"#).result
            #expect(count?["count"]?.integer == 2 && count?["corrupt"]?.text == #"["b"]"#)
            let patch = try connection.call("record.patch", Connection.params("notes", "b", more: ["patch": "{}"]))
            #expect(patch.error?.name == "corrupt")
        }
        let deletion = try call(connection, "record.deleteMatching", #","filter":\#(Self.filter)"#).result
        #expect(deletion?["deleted"]?.integer == 2 && deletion?["corrupt"]?.text == #"["b"]"#)
        #expect(try connection.exists("notes", "b") == true)
        // Each is logged once.
        let lines = daemon.log.split(separator: "\n").filter { $0.contains("corrupt") }
        #expect(lines.count == 1, "\(daemon.log)")
        #expect(lines.first?.contains(#"backend files: collection "notes": record "b""#) == true)
    }

    /// A directory in the place of a file is a record that cannot be decoded.
    @Test(arguments: ["inline", "process"])
    func aDirectoryInPlaceOfAFileIsOne(isolation: String) throws {
        let daemon = try daemon(format: "json", isolation)
        let connection = try daemon.connect()
        let path = "\(daemon.installation.path)/files/notes/item_b.json"
        Files.remove(path)
        try Files.makeDirectory(path)
        try Files.write("mine", to: "\(path)/file")
        for _ in 0..<2 {
            #expect(try connection.read("notes", "b").error?.name == "corrupt")
            #expect(try connection.create("notes", "b", "1").error?.name == "record_exists")
            for reply in [
                try connection.call("record.upsert", Connection.params("notes", "b", more: ["item": "1"])),
                try connection.delete("notes", "b"),
            ] {
                #expect(reply.error?.name == "corrupt" && reply.error?.isRetryable == false, "\(reply)")
            }
            for more in ["", #","filter":\#(Self.filter)"#] {
                let page = try call(connection, "record.query", more).result
                #expect(page?["records"]?.elements?.compactMap { $0["id"]?.string } == ["a", "c"])
                #expect(page?["corrupt"]?.text == #"["b"]"#)
            }
            #expect(try call(connection, "record.count").result?.text == #"{"count":3}"#)
        }
        let lines = daemon.log.split(separator: "\n")
        #expect(lines.contains { $0.contains("item_b.json is a directory") }, "\(daemon.log)")
        #expect(lines.count { $0.contains(#"record "b" is corrupt"#) } == 1, "\(daemon.log)")
        // It does not keep the others.
        let error = try call(connection, "record.deleteMatching", #","all":true"#).error
        #expect(error?.name == "outcome_unknown" && error?.details?["deleted"]?.integer == 2, "\(error as Any)")
        #expect(try Files.names(in: path) == ["file"])
        Files.remove("\(path)/file")
        #expect(try call(connection, "record.deleteMatching", #","all":true"#).result?["deleted"]?.integer == 1)
        #expect(!Files.exists(path))
    }

    /// A filter that depends on no member, and a page that shows none, leave them out, too.
    @Test(arguments: ["json", "xml"], ["inline", "process"])
    func areLeftOutWhereNoMemberIsLookedAt(format: String, isolation: String) throws {
        let daemon = try daemon(format: format, isolation)
        let connection = try daemon.connect()
        for filter in ["true", #"{"op":"or","args":[true,false]}"#] {
            let count = try call(connection, "record.count", #","filter":\#(filter)"#).result
            #expect(count?.text == #"{"count":2,"corrupt":["b"]}"#, "\(filter)")
        }
        let page = try call(connection, "record.query", #","fields":[]"#).result
        #expect(page?["records"]?.elements?.compactMap { $0["id"]?.string } == ["a", "c"])
        #expect(page?["corrupt"]?.text == #"["b"]"#)
        let any = #"{"op":"or","args":[true,{"op":"isNull","args":[{"property":"n"}]}]}"#
        let deletion = try call(connection, "record.deleteMatching", #","filter":\#(any)"#).result
        #expect(deletion?["deleted"]?.integer == 2 && deletion?["corrupt"]?.text == #"["b"]"#)
        #expect(try connection.exists("notes", "b") == true)
    }

    /// Where nobody has to look at items, corrupt records are like others.
    @Test(arguments: [#""all":true"#, #""prefix":"b""#], ["inline", "process"])
    func areCountedAndDeletedWithoutAFilter(selection: String, isolation: String) throws {
        let daemon = try daemon(format: "xml", isolation)
        let connection = try daemon.connect()
        let isOne = selection.contains("b")
        let prefix = isOne ? ",\(selection)" : ""
        #expect(try call(connection, "record.count", prefix).result?.text == #"{"count":\#(isOne ? 1 : 3)}"#)
        let deletion = try call(connection, "record.deleteMatching", ",\(selection)").result
        #expect(deletion?.text == #"{"deleted":\#(isOne ? 1 : 3)}"#)
        #expect(try connection.exists("notes", "b") == false)
    }

    /// A record that cannot be deleted does not keep the others, and the error tells how many those were.
    @Test(.enabled(if: ImmutableFile.isAvailable, "needs root and a file system with immutable files"))
    func deletionTellsWhatItHasDeleted() throws {
        let daemon = try daemon(format: "json", "inline")
        let connection = try daemon.connect()
        let directory = "\(daemon.installation.path)/files/notes"
        let file = try ImmutableFile("\(directory)/item_a.json")
        let error = try call(connection, "record.deleteMatching", #","all":true"#).error
        #expect(error?.name == "outcome_unknown" && error?.details?["deleted"]?.integer == 2)
        #expect(try Files.names(in: directory).filter { $0.hasPrefix("item_") } == ["item_a.json"])
        let nothing = try call(connection, "record.deleteMatching", #","all":true"#).error
        #expect(nothing?.name != "outcome_unknown" && nothing?.details == nil)
        _ = consume file
    }
}

/// A file that nobody can change or remove while this lives; see chattr(1).
private final class ImmutableFile {
    private let path: String

    static let isAvailable: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        let path = "\(directory.path)/file"
        return (try? Files.write("", to: path)) != nil && (try? ImmutableFile(path)) != nil
    }()

    init(_ path: String) throws {
        self.path = path
        let outcome = try Command.run("chattr", ["+i", path])
        guard outcome.status == .exited(0) else { throw Failure("chattr \(path): \(outcome.errors)") }
    }

    deinit { _ = try? Command.run("chattr", ["-i", path]) }
}
