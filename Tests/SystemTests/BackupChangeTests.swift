import CRUDTestSupport
import Testing

/// `backend.backup` while a collection of the backend is moved or dropped: the copy has it as a whole, or not at all.
@Suite struct BackupChangeTests {
    private static let count = 5000
    private static let main = "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}"
    private static let other = "other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}"

    /// A daemon with a collection of some 20 MB, and a directory for backups.
    private static func daemon() throws -> (Daemon, directory: String) {
        let daemon = try Daemon(Configuration(backends: "\(main)\n\(other)"))
        let connection = try daemon.connect()
        let padding = String(repeating: "x", count: 4000)
        for start in stride(from: 0, to: count, by: 250) {
            let operations = (start..<start + 250).map {
                #"{"op":"create","collection":"big","id":"\#($0)","item":"\#(padding)"}"#
            }
            let params = #"{"operations":[\#(operations.joined(separator: ","))],"atomic":true}"#
            #expect(try connection.call("record.batch", params).result != nil)
        }
        #expect(try connection.create("small", "1", "1").result != nil)
        let directory = "\(daemon.installation.path)/backups"
        try Files.makeDirectory(directory, mode: 0o700)
        return (daemon, directory)
    }

    /// Makes backups, the first one of which begins before `change` is asked for, until the change is over and a backup
    /// has been made after that.
    ///
    /// - Returns: the paths of the copies.
    private static func backUp(
        _ daemon: Daemon, _ directory: String, beside change: (Connection) throws -> Void,
        isOver: (Connection) throws -> Bool
    ) throws -> [String] {
        let (connection, admin) = (try daemon.connect(), try daemon.connect())
        var paths: [String] = []
        var hasEnded = false
        let deadline = Deadline()
        for number in 0..<100 where !hasEnded {
            let place = "\(directory)/\(number)"
            try Files.makeDirectory(place, mode: 0o700)
            let params = #"{"backend":"main","directory":"\#(place)"}"#
            hasEnded = number > 0 ? try isOver(admin) : false
            try connection.sendFrame(Connection.request("backend.backup", params, id: "1"))
            if number == 0 { try change(admin) }
            let reply = try connection.receive(until: deadline)
            paths.append(try #require(reply.result?["path"]?.string, "\(String(describing: reply.error?.message))"))
        }
        #expect(hasEnded)
        return paths
    }

    /// How many records of `big` a copy has, as a daemon without a catalog finds it.
    private static func count(in path: String) throws -> Int {
        #expect(try SQLiteDatabase.value("PRAGMA integrity_check", in: path) == "ok")
        let daemon = try Daemon(Configuration(backends: "main: {plugin: sqlite, options: {path: \(path)}}"))
        let connection = try daemon.connect()
        #expect(try connection.item("small", "1") == "1")
        let count = try connection.call("record.count", #"{"collection":"big"}"#).result?["count"]?.text
        return try #require(count.flatMap(Int.init))
    }

    @Test func besideAMoveOutOfTheBackend() throws {
        let (daemon, directory) = try Self.daemon()
        let paths = try Self.backUp(daemon, directory) { admin in
            try daemon.installation.configure(
                Configuration(
                    backends: "\(Self.main)\n\(Self.other)",
                    collections: #"big: {backend: other, move: true}"# + "\n" + #""*": {backend: main}"#))
            #expect(try admin.call("daemon.reload").result != nil)
        } isOver: { admin in
            try admin.call("collection.describe", #"{"collection":"big"}"#).result?["backend"]?.string == "other"
        }
        // A move leaves the originals where they were, until an administrator drops them.
        for path in paths { #expect(try Self.count(in: path) == Self.count) }
        let count = try daemon.connect().call("record.count", #"{"collection":"big"}"#).result?["count"]?.text
        #expect(count == "\(Self.count)")
    }

    @Test func besideADrop() throws {
        let (daemon, directory) = try Self.daemon()
        let paths = try Self.backUp(daemon, directory) { admin in
            let reply = try admin.call("collection.drop", #"{"collection":"big"}"#)
            #expect(reply.result?["dropped"]?.text == "true", "\(String(describing: reply.error))")
        } isOver: { admin in
            try admin.call("daemon.status").result?["removals"]?.text == "[]"
        }
        let counts = try paths.map { try Self.count(in: $0) }
        #expect(counts.allSatisfy { $0 == 0 || $0 == Self.count }, "\(counts)")
        #expect(counts.last == 0)
    }
}
