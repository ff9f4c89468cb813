import CRUDTestSupport
import Testing

/// A configuration under which records of a collection would be orphaned.
@Suite struct MovedCollectionTests {
    private static func configuration(_ collections: String) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                """, collections: collections)
    }

    @Test(arguments: ["c: {backend: main}", #""*": {backend: main}"#, "c*: {backend: main}"])
    func isRefusedUnlessForced(rule: String) throws {
        var daemon = try Daemon(Self.configuration(rule))
        for id in 0..<3 { #expect(try daemon.connect().create("c", "\(id)", "1").result != nil) }
        try daemon.stop()

        try daemon.installation.configure(Self.configuration("c: {backend: other}"))
        let refusal = try daemon.installation.startInVain()
        #expect(refusal.status != .exited(0))
        for word in ["c", "3", "main"] { #expect(refusal.errors.contains(word), "\(refusal.errors)") }
        #expect(!Files.exists(daemon.socketPath))

        daemon = try Daemon(on: daemon.installation, arguments: ["--force"])
        #expect(try daemon.connect().exists("c", "0") == false)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func aRefusedStartChangesNothing() throws {
        var daemon = try Daemon(Self.configuration("c: {backend: main}"))
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        try daemon.stop()
        try daemon.installation.configure(Self.configuration("c: {backend: other}"))
        #expect(try daemon.installation.startInVain().status != .exited(0))

        try daemon.installation.configure(Self.configuration("c: {backend: main}"))
        daemon = try daemon.restarted()
        #expect(try daemon.connect().item("c", "a") == "1")
    }

    /// Where the storages of this test are, and its state: not a byte there may change. Lock files and logs may.
    private static let storages = ["main.sqlite", "kid.sqlite", "files", "store.db", "state"]

    private static func digest(of installation: Installation) throws -> String {
        let script = "cd $0 && find \(storages.joined(separator: " ")) -type f ! -name '.lock' | sort | xargs sha256sum"
        let outcome = try Command.run("sh", ["-c", script, installation.path])
        guard outcome.status == .exited(0) else { throw Failure(outcome.errors) }
        return outcome.output
    }

    /// Indexes and the history of changes belong to the collection, whatever the file says that is refused.
    @Test func aRefusedStartChangesNotAByte() throws {
        func configuration(_ suffix: String) -> Configuration {
            let rule = "indexes: [n], changes: true"
            return Configuration(
                backends: """
                    main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                    kid: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/kid.sqlite}}
                    store: {command: [$DIRECTORY/store.py], options: {path: $DIRECTORY/store.db}}
                    files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
                    """,
                collections: """
                    main\(suffix): {backend: main, \(rule)}
                    kid\(suffix): {backend: kid, \(rule)}
                    store\(suffix): {backend: store, changes: true}
                    files\(suffix): {backend: files, format: xml}
                    """)
        }
        let installation = try Installation(configuration(""))
        let store = "\(BuildProducts.packageDirectory)/Plugins/Examples/store.py"
        try Files.copy(store, to: "\(installation.path)/store.py", mode: 0o755)
        var daemon = try Daemon(on: installation)
        var connection = try daemon.connect()
        let names = ["main", "kid", "store", "files"]
        for name in names {
            for id in 0..<3 { #expect(try connection.create(name, "\(id)", #"{"n":\#(id)}"#).result != nil) }
            #expect(try connection.delete(name, "2").result != nil)
        }
        func changes(_ name: String, _ cursor: String) throws -> JSON? {
            try connection.call("collection.changes", #"{"collection":"\#(name)","after":\#(cursor)}"#).result
        }
        let cursors = try names.dropLast().map { name in
            try #require(try changes(name, #""now""#)?["cursor"]?.text, "\(name)")
        }
        try daemon.stop()
        let before = try Self.digest(of: installation)
        try installation.configure(configuration("x"))
        #expect(try installation.startInVain().status == .exited(78))
        #expect(try Self.digest(of: installation) == before)

        try installation.configure(configuration(""))
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        for (name, cursor) in zip(names, cursors) {
            #expect(try changes(name, cursor)?["changes"]?.elements?.isEmpty == true, "\(name)")
        }
    }

    /// To look for its records must not change their indexes.
    @Test func aRefusedReloadLeavesItsIndexes() throws {
        let daemon = try Daemon(Self.configuration("c: {backend: main, indexes: [n]}"))
        let connection = try daemon.connect()
        for id in 0..<200 { #expect(try connection.create("c", "\(id)", #"{"n":\#(id)}"#).result != nil) }
        try daemon.installation.configure(Self.configuration("c: {backend: other}"))
        #expect(try connection.reloadInVain().name == "invalid_configuration")
        let query = #"{"collection":"c","filter":{"op":"=","args":[{"property":"n"},7]},"explain":true}"#
        let result = try connection.call("record.query", query).result
        #expect(result?["plan"]?["index"]?.string == "n", "\(result?.text ?? "")")
        #expect(result?["records"]?.elements?.count == 1)
    }

    /// The backend has the name that it had, and is another storage.
    @Test(arguments: [
        ("sqlite, options: {path: $DIRECTORY/main.sqlite}", "sqlite, options: {path: $DIRECTORY/new.sqlite}"),
        ("sqlite, options: {path: $DIRECTORY/main.sqlite}", "memory"),
        ("sqlite, isolation: process, options: {path: $DIRECTORY/main.sqlite}", "memory, isolation: process"),
        ("memory", "memory, isolation: process"), ("memory", "sqlite, options: {path: $DIRECTORY/main.sqlite}"),
    ])
    func aBackendKeepsItsRecordsUnlessForced(old: String, new: String) throws {
        func configuration(_ plugin: String) -> Configuration {
            Configuration(
                backends: """
                    main: {plugin: \(plugin)}
                    other: {plugin: memory}
                    another: {plugin: sqlite, options: {path: $DIRECTORY/another.sqlite}}
                    """, collections: "c: {backend: main}")
        }
        let daemon = try Daemon(configuration(old))
        let connection = try daemon.connect()
        for id in 0..<3 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        try daemon.installation.configure(configuration(new))
        let error = try connection.reloadInVain()
        #expect(error.name == "invalid_configuration")
        let reason =
            old.hasPrefix("memory")
            ? "collection c has 3 records in backend main" : "backend main: the catalog has 1 collection in its storage"
        #expect(error.message.contains(reason), "\(error.message)")
        #expect(error.details?["line"]?.integer == 7)
        #expect(try connection.item("c", "2") == "1")
        #expect(try connection.create("c", "3", "1").result != nil)
        _ = try connection.reload(force: true)
        #expect(try connection.item("c", "2") == nil)
    }

    @Test func withoutRecordsMayMove() throws {
        var daemon = try Daemon(Self.configuration("c: {backend: main}"))
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        #expect(try daemon.connect().delete("c", "a").result != nil)
        try daemon.stop()
        try daemon.installation.configure(Self.configuration("c: {backend: other}"))
        daemon = try daemon.restarted()
        #expect(try daemon.connect().create("c", "a", "2").result != nil)
    }

    @Test func aRuleMayBeNamedDifferentlyWhileTheRecordsStay() throws {
        var daemon = try Daemon(Self.configuration(#""*": {backend: main}"#))
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        try daemon.stop()
        try daemon.installation.configure(
            Self.configuration("c: {backend: main, indexes: [x]}\n\"*\": {backend: other}"))
        daemon = try daemon.restarted()
        #expect(try daemon.connect().item("c", "a") == "1")
        #expect(try daemon.connect().create("d", "a", "1").result != nil)
    }
}
