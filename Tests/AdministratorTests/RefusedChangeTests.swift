import CRUDTestSupport
import Testing

/// A start or a reload that is refused changes nothing: not a byte of storage or catalog.
@Suite struct RefusedChangeTests {
    /// A file that must be refused.
    enum Mistake: CaseIterable {
        /// The name of a collection is wrong, so that it has no rule.
        case name
        /// Another backend, another format.
        case backend, format
        /// The place where a move has left the originals.
        case originals
        /// The backend is not in the file any more.
        case missingBackend
        /// A move to a place that has records.
        case takenPlace
        /// An unknown key in another line, beside indexes that have changed.
        case key
        /// A plugin, an option, a limit and a user that do not exist.
        case plugin, option, limit, user
        /// The path of a database is wrong: nothing is there.
        case path

        fileprivate var lines: [String: String] {
            switch self {
            case .name: ["clients": "", "cleints": RefusedChangeTests.rules["clients"] ?? ""]
            case .backend: ["clients": "{backend: other, indexes: [age], changes: true}"]
            case .format: ["clients": "{backend: main, format: plist, indexes: [age], changes: true}"]
            case .originals: ["moved": "{backend: main, indexes: [name]}"]
            case .missingBackend: ["moved": "{backend: main, format: xml}"]
            case .takenPlace: ["clients": "{backend: files, move: true}", "moved": "{backend: main, format: xml}"]
            case .key: ["clients": "{backend: main}", "moved": "{backend: files, idnexes: [name]}"]
            // Beside something that would be done.
            case .plugin, .option, .limit, .user: ["clients": "{backend: main}"]
            case .path: [:]
            }
        }

        fileprivate var configuration: Configuration {
            var rules = RefusedChangeTests.rules
            rules.merge(lines) { $1 }
            var configuration = RefusedChangeTests.configuration(rules, hasFiles: self != .missingBackend)
            switch self {
            case .plugin: configuration.backends += "\nanother: {plugin: sqlight}"
            case .option:
                configuration.backends += "\nanother: {plugin: sqlite, options: {pahth: $DIRECTORY/another.sqlite}}"
            case .limit: configuration.limits = "frame_bytes: -1"
            case .user: configuration.access = "- {users: [nobody-has-this-name], collections: [\"*\"], allow: [read]}"
            case .path: configuration.backends.replace("/main.sqlite", with: "/mian.sqlite")
            default: break
            }
            return configuration
        }
    }

    fileprivate static let rules = [
        "clients": "{backend: main, indexes: [name], changes: true}", "moved": "{backend: files, indexes: [name]}",
    ]

    fileprivate static func configuration(_ rules: [String: String], hasFiles: Bool = true)
        -> Configuration
    {
        let files = hasFiles ? "files: {plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}" : ""
        return Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                \(files)
                """, collections: rules.filter { !$1.isEmpty }.map { "\($0): \($1)" }.sorted().joined(separator: "\n"))
    }

    /// An installation with two collections, of which one has been moved, and no daemon.
    private static func installation() throws -> Installation {
        var rules = rules
        rules["moved"] = "{backend: main, indexes: [name]}"
        // So that the plugin of the files is there.
        let installation = try Installation(configuration(rules))
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        for name in ["clients", "moved"] {
            for id in 0..<60 {
                let item = #"{"name":"n\#(id)","age":\#(id)}"#
                #expect(try connection.create(name, "\(id)", item).result != nil)
            }
            // A feed remembers what has been deleted.
            #expect(try connection.delete(name, "7").result != nil)
        }
        try installation.configure(configuration(Self.rules))
        #expect(try connection.call("daemon.reload", #"{"move":true}"#).result?["moves"]?.elements?.count == 1)
        let deadline = Deadline()
        while try connection.call("daemon.status").result?["moves"]?.elements?.isEmpty != true {
            try #require(!deadline.hasPassed, "the move takes long")
        }
        #expect(try daemon.stop() == .exited(0))
        // What a start does once, such as cleaning up, is not what is meant.
        let again = try Daemon(on: installation)
        #expect(try again.stop() == .exited(0))
        return installation
    }

    /// The bytes of all files but those of locks, sockets and logs.
    private static func contents(_ path: String, _ isTop: Bool = true) throws -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        for name in try Files.names(in: path) {
            let file = "\(path)/\(name)"
            if isTop, ["plugins", "crudd.yaml", "crudd.log", "notify", "crudd.sock"].contains(name) { continue }
            if [".lock", "-shm", "-wal", "lock"].contains(where: name.hasSuffix) { continue }
            if (try? Files.names(in: file)) != nil {
                found.merge(try contents(file, false)) { $1 }
            } else {
                found[file] = try Files.read(file)
            }
        }
        return found
    }

    private static func expectEqual(_ before: [String: [UInt8]], _ after: [String: [UInt8]], _ text: String) {
        let changed = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
        #expect(changed.isEmpty, "\(text): \(changed.sorted())")
        #expect(before.count > 60)
    }

    @Test(arguments: Mistake.allCases)
    func aRefusedStart(_ mistake: Mistake) throws {
        let installation = try Self.installation()
        let before = try Self.contents(installation.path)
        try installation.configure(mistake.configuration)
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78), "\(outcome.errors)")
        Self.expectEqual(before, try Self.contents(installation.path), "\(mistake): \(outcome.errors)")
    }

    /// A byte of the catalog's first line is wrong.
    @Test func aStartWithADamagedCatalog() throws {
        let installation = try Self.installation()
        let file = "\(installation.path)/state/collections.jsonl"
        var bytes = try Files.read(file)
        bytes[0] = bytes[0] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
        try Files.write(String(decoding: bytes, as: UTF8.self), to: file, mode: 0o600)
        let before = try Self.contents(installation.path)
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78) && outcome.errors.contains("collections.jsonl"), "\(outcome.errors)")
        Self.expectEqual(before, try Self.contents(installation.path), outcome.errors)
    }

    /// Another daemon serves: at the same socket, or with the same state.
    @Test(arguments: [true, false])
    func aStartBesideAnotherDaemon(atItsSocket: Bool) throws {
        let installation = try Self.installation()
        let daemon = try Daemon(on: installation)
        let before = try Self.contents(installation.path)
        if !atItsSocket {
            let text = Self.configuration(Self.rules).text.replacing("/crudd.sock", with: "/another.sock")
            try installation.configure(text: text)
        }
        let outcome = try installation.startInVain()
        #expect(outcome.status != .exited(0), "\(outcome.errors)")
        let after = try Self.contents(installation.path).filter { !$0.key.contains("another.sock") }
        Self.expectEqual(before, after, outcome.errors)
        #expect(try daemon.connect().isUsable())
        #expect(try daemon.stop() == .exited(0))
    }

    @Test(arguments: Mistake.allCases)
    func aRefusedReload(_ mistake: Mistake) throws {
        let installation = try Self.installation()
        let before = try Self.contents(installation.path)
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        try installation.configure(mistake.configuration)
        let reply = try connection.call("daemon.reload")
        #expect(reply.error?.name == "invalid_configuration", "\(reply)")
        // Only originals, which are not served, may be dropped.
        #expect(reply.error?.message.contains("drop") == (mistake == .originals), "\(reply)")
        #expect(try daemon.stop() == .exited(0))
        Self.expectEqual(before, try Self.contents(installation.path), "\(mistake): \(reply)")
    }

    // MARK: A catalog that cannot be written

    /// By force, from originals, whose feed and indexes are of an earlier time.
    private static var forced: Configuration {
        configuration([
            "clients": "{backend: other, format: xml, indexes: [age], changes: true}",
            "moved": "{backend: main, indexes: [age], changes: true}",
        ])
    }

    @Test func aStartByForceWithoutItsRecord() throws {
        let installation = try Self.installation()
        let disk = try FaultyDisk()
        let before = try Self.contents(installation.path)
        try installation.configure(Self.forced)
        try disk.fail("write", "collections.jsonl")
        let outcome = try installation.startInVain(["--force"], environment: disk.variables)
        #expect(outcome.status != .exited(0), "\(outcome.errors)")
        #expect(outcome.errors.contains("collections.jsonl"), "\(outcome.errors)")
        Self.expectEqual(before, try Self.contents(installation.path), outcome.errors)
    }

    @Test func aReloadByForceWithoutItsRecord() throws {
        let installation = try Self.installation()
        let disk = try FaultyDisk()
        let before = try Self.contents(installation.path)
        let daemon = try Daemon(on: installation, environment: disk.variables)
        let connection = try daemon.connect()
        try installation.configure(Self.forced)
        try disk.fail("write", "collections.jsonl")
        let reply = try connection.call("daemon.reload", #"{"force":true}"#)
        #expect(reply.error?.name == "unavailable", "\(reply)")
        try disk.heal()
        #expect(try daemon.stop() == .exited(0))
        Self.expectEqual(before, try Self.contents(installation.path), "\(reply)")
    }
}
