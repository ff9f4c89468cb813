import CRUDTestSupport
import Glibc
import Testing

/// Every kind of change that a running daemon takes over.
@Suite struct ReloadTests {
    private static let main = "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}"
    private static let other = "other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}"

    @Test func nothingHasChanged() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        for _ in 0..<3 { #expect(try connection.reload().isEmpty) }
        #expect(try connection.item("c", "a") == "1")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func backendsComeAndGo() throws {
        let daemon = try Daemon(Configuration(backends: Self.main, collections: "\"*\": {backend: main}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)

        try daemon.installation.configure(
            Configuration(
                backends: "\(Self.main)\n\(Self.other)", collections: "d: {backend: other}\n\"*\": {backend: main}"))
        #expect(
            try connection.reload() == ["backend other: added", "collection d: added, in backend other as json"])
        #expect(try connection.backend("other")?["state"]?.string == "ready")
        #expect(try connection.create("d", "a", "2").result != nil)
        #expect(Files.exists("\(daemon.installation.path)/other.sqlite"))
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.delete("d", "a").result != nil)

        try daemon.installation.configure(
            Configuration(backends: Self.main, collections: "c: {backend: main}"))
        #expect(
            try connection.reload() == [
                "backend other: removed", "collection d: removed", "collection *: removed",
                "collection c: added, in backend main as json",
            ])
        #expect(try connection.backend("other") == nil)
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.create("d", "a", "2").error?.name == "collection_not_found")
        #expect(try connection.call("collection.list").result?["collections"]?.elements?.count == 1)
        #expect(try daemon.stop() == .exited(0))
        // What a reload has closed is not asked about again.
        #expect(try daemon.restarted().connect().item("c", "a") == "1")
    }

    @Test func aChangedBackendIsReopened() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.backend("main")?["capabilities"]?.text.contains("durable") == true)
        try daemon.installation.configure(
            Configuration(backends: "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite, synchronous: off}}")
        )
        #expect(try connection.reload() == ["backend main: options changed"])
        #expect(try connection.backend("main")?["capabilities"]?.text.contains("durable") == false)
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.update("c", "a", "2").result != nil)
        #expect(try connection.item("c", "a") == "2")
        #expect(try daemon.stop() == .exited(0))
    }

    /// Every search of a backend that leaves gets a reply: a result, or that it could not be finished.
    @Test(arguments: ["sqlite", "memory"], ["inline", "process"])
    func searchesOfABackendThatLeavesAreReplied(plugin: String, isolation: String) throws {
        let options = plugin == "sqlite" ? ", options: {path: $DIRECTORY/leaving.sqlite}" : ""
        let leaving = "leaving: {plugin: \(plugin), isolation: \(isolation)\(options)}"
        let daemon = try Daemon(
            Configuration(
                backends: "\(Self.main)\n\(leaving)", collections: "c: {backend: leaving}\nd: {backend: main}"))
        let (administrator, connection) = (try daemon.connect(), try daemon.connect())
        for batch in 0..<20 {
            let operations = (0..<1000).map {
                #"{"op":"create","collection":"c","id":"\#(batch) \#($0)","item":{"t":"\#(batch)-\#($0)"}}"#
            }
            let params = #"{"operations":[\#(operations.joined(separator: ","))]}"#
            #expect(try administrator.call("record.batch", params).result != nil)
        }
        // Each takes long enough that a reload finds one of them in progress.
        let patterns = (0..<200).map { #"{"op":"like","args":[{"property":"t"},"%\#($0)%-x%"]}"# }
        let count = #"{"collection":"c","filter":{"op":"or","args":[\#(patterns.joined(separator: ","))]}}"#
        for number in 0..<200 {
            try connection.sendFrame(Connection.request("record.count", count, id: "\(number)"))
        }
        // The first has been replied to: the others are in flight or wait.
        var replies = [try connection.receive()]
        try daemon.installation.configure(Configuration(backends: Self.main, collections: "d: {backend: main}"))
        #expect(try administrator.reload(force: true).contains("backend leaving: removed"))
        while replies.count < 200 { replies.append(try connection.receive()) }
        #expect(Set(replies.map(\.id.text)).count == 200)
        let errors = replies.compactMap { $0.error?.name }
        #expect(errors.contains("unavailable") && Set(errors).isSubset(of: ["unavailable", "collection_not_found"]))
        #expect(try connection.isUsable())
        #expect(try connection.create("d", "a", "1").result != nil)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test func anUnchangedBackendIsNotTouched() throws {
        let scripted = "memory: {plugin: scripted}"
        let installation = try Installation(
            Configuration(backends: "\(Self.main)\n\(scripted)", collections: "\"*\": {backend: memory}"))
        try CompiledPlugin.compile("scripted.c", to: "\(installation.pluginDirectory)/scripted.so")
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try installation.configure(
            Configuration(backends: "\(scripted)\n\(Self.other)", collections: "\"*\": {backend: memory}"))
        #expect(try connection.reload() == ["backend main: removed", "backend other: added"])
        #expect(try connection.item("c", "a") == "1", "it lives in memory, and so must the backend")
    }

    @Test func anEmptyCollectionMoves() throws {
        let backends = "\(Self.main)\n\(Self.other)"
        let daemon = try Daemon(Configuration(backends: backends))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.delete("c", "a").result != nil)
        try daemon.installation.configure(Configuration(backends: backends, collections: "\"*\": {backend: other}"))
        #expect(try connection.reload() == ["collection *: from backend main to backend other"])
        #expect(try connection.create("c", "a", "2").result != nil)
        let described = try connection.call("collection.describe", #"{"collection":"c"}"#).result
        #expect(described?["backend"]?.string == "other")
        #expect(described?["count"]?.integer == 1)
        #expect(try daemon.stop() == .exited(0))
        #expect(try daemon.restarted().connect().item("c", "a") == "2")
    }

    @Test func indexesChange() throws {
        let daemon = try Daemon(Configuration(collections: "c: {backend: main, indexes: [a]}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(Configuration(collections: "c: {backend: main, indexes: [a, b.c]}"))
        #expect(try connection.reload() == ["collection c: indexes changed"])
        #expect(
            try connection.call("collection.describe", #"{"collection":"c"}"#).result?["indexes"]?.text
                == #"["a","b.c"]"#)
        #expect(try connection.item("c", "a") == "1")
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as another user"), arguments: [1, 4])
    func accessAppliesToOpenSessions(loops: Int) throws {
        func configuration(_ access: String?) -> Configuration {
            Configuration(socket: #"mode: "0666""#, access: access, loops: loops)
        }
        let daemon = try Daemon(configuration(nil))
        let root = try daemon.connect()
        let peer = try daemon.connect(as: Peer(user: 65534, group: 65534))
        #expect(try peer.create("c", "a", "1").result != nil)
        let denial = try peer.call("daemon.reload").error
        #expect(denial?.name == "permission_denied", "not even the file is read")
        #expect(denial?.message == "the access rules do not allow you this, which needs admin")

        try daemon.installation.configure(configuration("- {users: [65534], allow: [read]}"))
        #expect(try root.reload() == ["access: added"])
        #expect(try peer.item("c", "a") == "1")
        #expect(try peer.update("c", "a", "2").error?.name == "permission_denied")

        try daemon.installation.configure(configuration("- {users: [65534], allow: [write, admin]}"))
        #expect(
            try root.reload() == [
                "access: changed",
                "access: user nobody (65534) gains write and admin on all collections, admin of the daemon",
            ])
        #expect(try peer.read("c", "a").error?.name == "permission_denied")
        #expect(try peer.update("c", "a", "2").result != nil)
        try daemon.installation.configure(configuration(nil))
        #expect(
            try peer.reload() == [
                "access: removed", "access: everybody gains read and write on all collections",
            ])
        #expect(try peer.call("daemon.status").error?.name == "permission_denied")
        #expect(try peer.item("c", "a") == "2")
    }

    @Test func limitsApply() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let others = try (0..<5).map { _ in try daemon.connect() }
        for other in others { #expect(try other.isUsable()) }
        let deep = String(repeating: "[", count: 20) + String(repeating: "]", count: 20)
        #expect(try connection.upsert("c", "a", deep).result != nil)
        try daemon.installation.configure(
            Configuration(
                limits: """
                    json_depth: 8
                    item_bytes: 100B
                    batch: 2
                    collections: 1
                    sessions: 1
                    sessions_per_user: 1
                    idle_timeout: 1h
                    """))
        let changes = try connection.reload()
        #expect(changes.contains("limits.json_depth: from 128 to 8"))
        #expect(changes.contains("limits.item_bytes: from 4MiB to 100B"))
        #expect(changes.contains("limits.idle_timeout: from 0s to 1h"))
        #expect(changes.count == 7)
        for (reply, limit) in [
            (try connection.upsert("c", "a", deep), "json_depth"),
            (try connection.upsert("c", "a", "\"" + String(repeating: "x", count: 200) + "\""), "item_bytes"),
            (try connection.readMany("c", ["a", "b", "c"]), "batch"),
            (try connection.upsert("d", "a", "1"), "collections"),
        ] { #expect(reply.error?.details?["limit"]?.string == limit, "\(reply)") }
        for other in others { #expect(try other.isUsable(), "those that are there stay") }
        let late = try (0..<8).map { _ in try daemon.connect() }
        // One and the eight that are kept free for administrators.
        for connection in late.suffix(5) {
            #expect(try connection.receive().error?.details?["limit"]?.string == "sessions")
        }
        try daemon.installation.configure(Configuration())
        #expect(try connection.reload().count == 7)
        #expect(try connection.upsert("c", "a", deep).result != nil)
        #expect(try daemon.connect().isUsable())
    }

    @Test func anIdleTimeoutApplies() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.isUsable())
        try daemon.installation.configure(Configuration(limits: "idle_timeout: 200ms"))
        daemon.process.signal(SIGHUP)
        #expect(try connection.receiveFrame() == nil)
    }

    @Test func theLogsLevelApplies() throws {
        let daemon = try Daemon(on: Installation(text: Configuration().text + "log: {level: critical}\n"))
        let connection = try daemon.connect()
        #expect(daemon.log.isEmpty)
        try daemon.installation.configure(text: Configuration().text + "log: {level: debug}\n")
        #expect(try connection.reload() == ["log.level: from critical to debug"])
        #expect(daemon.log.contains("log.level: from critical to debug"))
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func pluginDirectoriesApply() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let place = "\(daemon.installation.path)/more"
        try Files.makeDirectory(place)
        try CompiledPlugin.compile("scripted.c", to: "\(place)/scripted.so")
        try daemon.installation.configure(
            Configuration(
                pluginDirectories: "$DIRECTORY/plugins, $DIRECTORY/more",
                backends: "\(Self.main)\nmemory: {plugin: scripted}"))
        let changes = try connection.reload()
        #expect(changes.count == 2)
        #expect(changes.first == "backend memory: added")
        #expect(changes.last?.hasPrefix("plugins.directories: now ") == true)
        #expect(try connection.call("plugin.list").result?["plugins"]?.elements?.count == 2)
    }

    @Test func whatCannotChangeIsSaidAndTheRestApplies() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        var text = Configuration(socket: #"mode: "0600""#, limits: "batch: 7").text
        text = text.replacing("/crudd.sock", with: "/moved.sock").replacing("/state\n", with: "/elsewhere\n")
        try daemon.installation.configure(text: text)
        let path = daemon.installation.path
        for _ in 0..<2 {
            let changes = try connection.reload()
            for fixed in [
                "socket.path: stays \(path)/crudd.sock until the daemon is restarted, then \(path)/moved.sock",
                "socket.mode: stays 660 until the daemon is restarted, then 600",
                "state_directory: stays \(path)/state until the daemon is restarted, then \(path)/elsewhere",
            ] { #expect(changes.contains(fixed), "\(changes)") }
        }
        #expect(try connection.call("session.hello").result?["limits"]?["batch"]?.integer == 7)
        #expect(try daemon.connect().isUsable())
        #expect(!Files.exists("\(path)/moved.sock"))
    }

    /// Nobody must believe that it runs.
    @Test func anotherPluginFileNeedsARestart() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let file = "\(daemon.installation.pluginDirectory)/sqlite.so"
        try Files.copy(BuildProducts.path(of: "libsqlite.so"), to: file + ".new", mode: 0o755)
        #expect(rename(file + ".new", file) == 0)
        let reply = try connection.call("daemon.reload")
        #expect(reply.error?.name == "invalid_configuration")
        #expect(reply.description.contains("\(file) has changed since it was loaded: restart the daemon"), "\(reply)")
        #expect(try connection.create("c", "a", "1").result != nil)
    }

    @Test func takesPartInABatchInItsOrder() throws {
        let daemon = try Daemon(Configuration(collections: "c: {backend: main}"))
        let connection = try daemon.connect()
        try daemon.installation.configure(Configuration(collections: "d: {backend: main}"))
        let create = { Connection.request("record.create", Connection.params("d", $0, item: "1"), id: $1) }
        let reload = Connection.request("daemon.reload", "{}", id: "2")
        try connection.sendFrame("[\(create("a", "1")),\(reload),\(create("b", "3"))]")
        let replies = try connection.receiveBatch().sorted { $0.id.text < $1.id.text }
        #expect(replies.map(\.id.text) == ["1", "2", "3"])
        #expect(replies[0].error?.name == "collection_not_found")
        #expect(replies[1].result?["changes"]?.elements?.count == 2)
        #expect(replies[2].result != nil)
        // As a notification it is executed and has no reply.
        try daemon.installation.configure(Configuration(collections: "d: {backend: main}\ne: {backend: main}"))
        try connection.sendFrame(Connection.notification("daemon.reload"))
        let deadline = Deadline()
        while try connection.upsert("e", "a", "1").result == nil { try #require(!deadline.hasPassed) }
        #expect(try connection.finish().isEmpty)
    }

    @Test func crudctlReloads() throws {
        let daemon = try Daemon()
        func run(_ arguments: String...) throws -> Command.Outcome {
            try Command.run(
                BuildProducts.path(of: "crudctl"), ["--socket", daemon.socketPath] + arguments)
        }
        try daemon.installation.configure(Configuration(limits: "batch: 7"))
        let outcome = try run("reload", "-o", "json")
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
        #expect(outcome.output.contains("limits.batch: from 1000 to 7"))
        try daemon.installation.configure(text: "nonsense: true\n")
        let refusal = try run("reload")
        #expect(refusal.status == .exited(78))
        #expect(refusal.output.isEmpty)
        #expect(refusal.errors.hasPrefix("crudctl: invalid_configuration: "))
        #expect(refusal.errors.contains("crudd.yaml:1:1"), "\(refusal.errors)")
        try daemon.installation.configure(Configuration())
        #expect(try run("reload", "--force").status == .exited(0))
    }
}
