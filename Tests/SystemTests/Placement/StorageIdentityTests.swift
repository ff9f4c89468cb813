import CRUDTestSupport
import Glibc
import Testing

/// A backend serves the storage in which its collections are, or none: a mistyped path, a lost file and another storage
/// under the old name are refused alike, at a start and at a reload, and leave no empty database behind.
@Suite struct StorageIdentityTests {
    /// A plugin, and what it keeps its records in.
    struct Kind: CustomTestStringConvertible, Sendable {
        let name: String
        let definition: String

        var testDescription: String { name }

        func backend(_ name: String, at file: String) -> String {
            "\(name): \(definition.replacing("FILE", with: "$DIRECTORY/\(file)"))"
        }
    }

    static let kinds = [
        Kind(name: "sqlite", definition: "{plugin: sqlite, options: {path: FILE}}"),
        Kind(name: "sqlite in a child", definition: "{plugin: sqlite, isolation: process, options: {path: FILE}}"),
        Kind(name: "filesystem", definition: "{plugin: filesystem, options: {directory: FILE}}"),
        Kind(name: "memory", definition: "{plugin: memory, options: {log: FILE}}"),
        Kind(name: "store.py", definition: "{command: [$DIRECTORY/store.py], options: {path: FILE}}"),
    ]

    private static func configuration(_ backends: String..., rule: String = "{backend: main}") -> Configuration {
        Configuration(backends: backends.joined(separator: "\n"), collections: "c: \(rule)")
    }

    /// A daemon that has stored a record in FILE `main`, stopped.
    private static func stopped(_ kind: Kind) throws -> Installation {
        let daemon = try Daemon(configuration(kind.backend("main", at: "main")))
        #expect(try daemon.connect().create("c", "a", "1").result != nil)
        #expect(try daemon.stop() == .exited(0))
        return daemon.installation
    }

    /// What is stored, and the catalog: not a byte may change. Lock and log files of databases may.
    private static func digest(_ installation: Installation) throws -> String {
        let script = """
            cd $0 && find . -type f ! -name '*lock' ! -name '*-wal' ! -name '*-shm' ! -name '*-reserve' \
            ! -name crudd.log ! -name crudd.yaml | sort | xargs sha256sum
            """
        return try Command.run("sh", ["-c", script, installation.path]).output
    }

    private static func expectRefusal(_ message: String, _ installation: Installation, location: String = "main") {
        for part in ["backend main: the catalog has 1 collection in its storage", "--force"] {
            #expect(message.contains(part), "\(message)")
        }
        // Where a plugin does not say which option is the path, there is none to be told.
        let isTold = !Files.exists("\(installation.path)/store.py")
        #expect(message.contains(" in \(installation.path)/main, but") == isTold, "\(message)")
        #expect(message.contains(" in \(installation.path)/\(location);"), "\(message)")
    }

    private static func item(_ installation: Installation, _ arguments: [String] = []) throws -> String? {
        let daemon = try Daemon(on: installation, arguments: arguments)
        defer { _ = try? daemon.stop() }
        return try daemon.connect().item("c", "a")
    }

    // MARK: Starts

    @Test(arguments: kinds) func aMistypedPathIsRefusedAtAStart(kind: Kind) throws {
        let installation = try Self.stopped(kind)
        let before = try Self.digest(installation)
        try installation.configure(
            Self.configuration(kind.backend("main", at: "mian"), kind.backend("new", at: "new")))
        let refusal = try installation.startInVain()
        #expect(refusal.status == .exited(78))
        Self.expectRefusal(refusal.errors, installation, location: "mian")
        #expect(try Self.digest(installation) == before)
        for name in ["mian", "new"] { #expect(!Files.exists("\(installation.path)/\(name)")) }

        try installation.configure(Self.configuration(kind.backend("main", at: "main")))
        #expect(try Self.item(installation) == "1")
    }

    @Test(arguments: kinds) func aLostStorageIsRefusedAtAStart(kind: Kind) throws {
        let installation = try Self.stopped(kind)
        let main = "\(installation.path)/main"
        #expect(rename(main, "\(main)-kept") == 0)
        let refusal = try installation.startInVain()
        #expect(refusal.status == .exited(78))
        Self.expectRefusal(refusal.errors, installation)
        #expect(!Files.exists(main))
        #expect(rename("\(main)-kept", main) == 0)
        #expect(try Self.item(installation) == "1")
    }

    @Test(arguments: kinds) func anotherStorageIsRefusedAtAStart(kind: Kind) throws {
        let installation = try Self.stopped(kind)
        let others = try Self.stopped(kind)
        let (main, other) = ("\(installation.path)/main", "\(installation.path)/other")
        #expect(rename("\(others.path)/main", other) == 0)
        let before = try Self.digest(installation)
        try installation.configure(Self.configuration(kind.backend("main", at: "other")))
        let refusal = try installation.startInVain()
        #expect(refusal.status == .exited(78))
        Self.expectRefusal(refusal.errors, installation, location: "other")
        #expect(try Self.digest(installation) == before)

        // An empty one in its place.
        #expect(try Command.run("rm", ["-r", other]).status == .exited(0))
        #expect(rename(main, "\(main)-kept") == 0)
        if ["filesystem", "memory"].contains(kind.name) {
            try Files.makeDirectory(main)
        } else {
            try Files.write("", to: main)
        }
        try installation.configure(Self.configuration(kind.backend("main", at: "main")))
        #expect(try installation.startInVain().status == .exited(78))
    }

    @Test(arguments: kinds) func aRestoredBackupIsTheSameStorage(kind: Kind) throws {
        let installation = try Self.stopped(kind)
        let main = "\(installation.path)/main"
        #expect(try Command.run("cp", ["-a", main, "\(main)-backup"]).status == .exited(0))
        do {
            let daemon = try Daemon(on: installation)
            #expect(try daemon.connect().update("c", "a", "2").result != nil)
            try daemon.stop()
        }
        #expect(try Command.run("rm", ["-r", main]).status == .exited(0))
        #expect(rename("\(main)-backup", main) == 0)
        #expect(try Self.item(installation) == "1")
        // So is one that has been moved, and is named where it is.
        #expect(rename(main, "\(installation.path)/moved") == 0)
        try installation.configure(Self.configuration(kind.backend("main", at: "moved")))
        #expect(try Self.item(installation) == "1")
    }

    @Test(arguments: kinds) func forceServesAnotherStorage(kind: Kind) throws {
        let installation = try Self.stopped(kind)
        try installation.configure(Self.configuration(kind.backend("main", at: "mian")))
        #expect(try Self.item(installation, ["--force"]) == nil)
        do {
            let daemon = try Daemon(on: installation)
            #expect(try daemon.connect().create("c", "a", "2").result != nil)
            try daemon.stop()
        }
        // That is the storage now.
        try installation.configure(Self.configuration(kind.backend("main", at: "main")))
        #expect(try installation.startInVain().status == .exited(78))
        #expect(try Self.item(installation, ["--force"]) == "1")
    }

    /// Of a storage of an older crudd the catalog knows nothing: it is taken as it is, and known from then on.
    @Test func anOlderStorageIsAdopted() throws {
        let kind = Self.kinds[0]
        let installation = try Self.stopped(kind)
        let script = """
            import sqlite3, sys
            database = sqlite3.connect(sys.argv[1])
            database.executescript("DROP TABLE crudd_storage; PRAGMA user_version = 3")
            """
        #expect(
            try Command.run("/usr/bin/python3", ["-c", script, "\(installation.path)/main"]).status == .exited(0))
        try Files.write(
            #"{"name":"c","backend":"main","format":"json"}"# + "\n",
            to: "\(installation.path)/state/collections.jsonl",
            mode: 0o600)
        #expect(try Self.item(installation) == "1")
        try installation.configure(Self.configuration(kind.backend("main", at: "mian")))
        #expect(try installation.startInVain().status == .exited(78))
    }

    /// A storage that could not be opened at the start is known from the moment in which it can, also if clients create
    /// nothing in it.
    @Test func aStorageThatIsOpenedLaterIsKnown() throws {
        let kind = Self.kinds[0]
        func configuration(_ path: String, _ rule: String) -> Configuration {
            Self.configuration(kind.backend("main", at: path), kind.backend("next", at: "next"), rule: rule)
        }
        let installation = try Installation(configuration("main", "{backend: next}"))
        let lock = try SQLiteLock(of: "\(installation.path)/main")
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.backend("main")?["state"]?.string == "down")
        try lock.end()
        let deadline = Deadline()
        while try connection.backend("main")?["state"]?.string != "ready" { try #require(!deadline.hasPassed) }
        try installation.configure(configuration("main", "{backend: main}"))
        try connection.reloadMoving()
        try connection.awaitMoves()
        #expect(try connection.describe("c")["backend"]?.string == "main")
        #expect(try daemon.stop() == .exited(0))

        try installation.configure(configuration("mian", "{backend: main}"))
        let refusal = try installation.startInVain()
        #expect(refusal.status == .exited(78))
        #expect(!Files.exists("\(installation.path)/mian"))
        try installation.configure(configuration("main", "{backend: main}"))
        #expect(try Self.item(installation) == "1")
    }

    // MARK: Reloads

    @Test(arguments: kinds) func anotherStorageIsRefusedAtAReload(kind: Kind) throws {
        let others = try Self.stopped(kind)
        let daemon = try Daemon(Self.configuration(kind.backend("main", at: "main")))
        let installation = daemon.installation
        #expect(rename("\(others.path)/main", "\(installation.path)/other") == 0)
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "2").result != nil)
        for location in ["mian", "other"] {
            let other = "\(installation.path)/\(location)"
            let before = try Command.run("sh", ["-c", "find $0 -type f ! -name '*lock' | xargs sha256sum", other])
            try installation.configure(
                Self.configuration(kind.backend("main", at: location), kind.backend("new", at: "new")))
            let error = try connection.reloadInVain()
            #expect(error.name == "invalid_configuration")
            Self.expectRefusal(error.message, installation, location: location)
            #expect(!Files.exists("\(installation.path)/new") && Files.exists(other) == (location == "other"))
            let after = try Command.run("sh", ["-c", "find $0 -type f ! -name '*lock' | xargs sha256sum", other])
            #expect(after.output == before.output)
            #expect(try connection.item("c", "a") == "2")
            #expect(try connection.update("c", "a", "2").result != nil)
        }
        let changes = try connection.reload(force: true)
        #expect(changes.contains { $0.contains("backend main: another storage is served now") }, "\(changes)")
        #expect(try connection.item("c", "a") == "1")
        try daemon.stop()
        #expect(try Self.item(installation) == "1")
    }

    /// Storages without a path of their own: a schema of a server, and a suite.
    @Test(arguments: ["postgresql", "userdefaults"]) func aMistypedNameIsRefused(plugin: String) throws {
        let server = try PostgreSQLServer.shared()
        func configuration(_ name: String) -> Configuration {
            let options =
                plugin == "userdefaults"
                ? "suite: \(name)" : #"connection: "\#(server.connection)", schema: \#(name)"#
            return Self.configuration("main: {plugin: \(plugin), options: {\(options)}}")
        }
        let daemon = try Daemon(configuration("identity_of_names"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(configuration("identity_of_nmaes"))
        let text = "backend main: the catalog has 1 collection in its storage"
        let error = try connection.reloadInVain()
        #expect(error.name == "invalid_configuration" && error.message.contains(text), "\(error.message)")
        #expect(try connection.item("c", "a") == "1")
        #expect(try daemon.stop() == .exited(0))
        let (path, file) = (daemon.installation.path, daemon.installation.configurationFile)
        let refusal = try Command.run(
            BuildProducts.path(of: "crudd"), ["--config", file], environment: ["HOME": path])
        #expect(refusal.status == .exited(78) && refusal.errors.contains(text), "\(refusal.errors)")
        // Neither has made anything but a lock.
        #expect(try server.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'identity_of_nmaes'") == "0")
        let found = try Command.run("find", [path, "-name", "*identity_of_nmaes*", "!", "-name", "*lock"])
        #expect(found.output.isEmpty, "\(found)")
        try daemon.installation.configure(configuration("identity_of_names"))
        #expect(try Self.item(daemon.installation) == "1")
    }

    /// What was left in a storage, or was to be removed from it, is forgotten with it.
    @Test func originalsAreForgottenWithTheirStorage() throws {
        let kind = Self.kinds[0]
        func configuration(_ path: String, _ rule: String) -> Configuration {
            Self.configuration(kind.backend("main", at: path), kind.backend("next", at: "next"), rule: rule)
        }
        let daemon = try Daemon(configuration("main", "{backend: main}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(configuration("main", "{backend: next}"))
        #expect(try connection.call("daemon.reload", #"{"move":true}"#).result != nil)
        let deadline = Deadline()
        func description() throws -> JSON? {
            try connection.call("collection.describe", #"{"collection":"c"}"#).result
        }
        while try description()?["originals"] == nil { try #require(!deadline.hasPassed) }

        try daemon.installation.configure(configuration("mian", "{backend: next}"))
        Self.expectRefusal(try connection.reloadInVain().message, daemon.installation, location: "mian")
        _ = try connection.reload(force: true)
        #expect(try description()?["originals"] == nil)
        #expect(try connection.item("c", "a") == "1")
    }
}
