import CRUDModel
import CRUDTestSupport
import Foundation
import ScriptedDaemon
import Testing

@testable import crudctl

/// What each command prints on a terminal of 80 and of 200 columns, compared with `Golden/COLUMNS.txt`; `top` and the
/// prompt, which are live, in tmux, compared with `Golden/top-COLUMNS.txt` and `Golden/prompt-COLUMNS.txt`. With
/// `CRUDD_RECORD_GOLDEN=1` these files are written anew, to be read before they are committed.
@Suite struct GoldenTests {
    /// A command and what the daemon replies to its requests, one after the other.
    struct Fixture: Sendable {
        let words: [String]
        let replies: [String]

        /// - Parameter words: those with `@` before them are names of ``files``.
        init(_ words: String..., reply: String) {
            self.words = words
            replies = [reply]
        }

        init(_ words: String..., replies: String...) {
            self.words = words
            self.replies = replies
        }
    }

    private static let record =
        #"{"id":"ada","item":{"name":"Ada Lovelace","age":36,"tags":["a","b"]},"revision":"06f1c2","#
        + #""expiresAt":1795527507443}"#
    private static let missing =
        #"{"code":-32001,"message":"there is no record \"nobody\" in collection \"clients\"","#
        + #""data":{"name":"record_not_found"}}"#

    private static let forbidden =
        #"{"code":-32005,"message":"the access rules do not allow you this","data":{"name":"permission_denied"}}"#
    private static let limits = #"{"daemon":"crudd","limits":{"frame_bytes":65536,"item_bytes":32768,"batch":2}}"#
    private static let description = #"{"name":"clients","backend":"main","format":"json","indexes":[],"count":2}"#
    private static let stored = #"{"results":[{"result":{}},{"result":{}}]}"#

    /// Files that are given to commands.
    private static let files = [
        "operations": (0..<2).map { #"{"op":"create","collection":"clients","id":"\#($0)","item":1}"# + "\n" }.joined(),
        "dump": """
        {"crudd":"dump","version":1,"collection":"clients","format":"json"}
        {"id":"ada","item":1}
        {"id":"alan","item":2}
        {"count":2}

        """,
        "damaged": #"{"crudd":"dump","version":1,"collection":"clients","format":"json"}"# + "\n",
        "table.csv": "id,name,age\nada,Ada,36\nalan,Alan,41\n",
        "bad.csv": "id,name,age\nada,Ada,36\nalan,Alan,many\n",
        "good.yaml": """
        plugins: {directories: [@/plugins]}
        backends:
          main: {plugin: memory}
        collections:
          clients: {backend: main}

        """,
        "bad.yaml": "backends:\n  main: {plugin: memory}\ncollections:\n  clients: {backend: mian}\nlimit: 3\n",
    ]

    private static let page =
        #"{"records":[\#(record),{"id":"日本","item":[1,2,{"a":null}],"revision":"06f1c7"},"#
        + #"{"id":"long","item":{"name":"\#(String(repeating: "long ", count: 50))"},"revision":"06f1c8"}],"#
        + #""cursor":"next"}"#
    private static let list =
        #"{"collections":[{"name":"clients","backend":"main","format":"json","indexes":["name","age"]},"#
        + #"{"name":"a collection with a rather long name","backend":"archive","format":"xml","#
        + #""indexes":[]}]}"#

    private static let fixtures = [
        Fixture("create", "clients", "ada", "1", reply: #"{"revision":"06f1c2"}"#),
        Fixture("edit", "clients", "ada", replies: record, #"{"revision":"06f1c3"}"#),
        Fixture("dump", "clients", replies: description, #"{"records":[\#(record),\#(record)]}"#),
        Fixture("load", "@dump", replies: limits, stored),
        Fixture("load", "@damaged", replies: limits),
        Fixture(
            "import", "clients", "@table.csv", "--id", "id", "--type", "age=integer", replies: limits, description,
            stored),
        Fixture("import", "clients", "@bad.csv", "--id", "id", "--type", "age=integer", replies: limits),
        Fixture(
            "watch", "clients",
            replies: #"{"changes":[\#(record),{"id":"alan","deleted":true}],"cursor":"k","more":false}"#, forbidden),
        Fixture("check-config", "@good.yaml"),
        Fixture("check-config", "@bad.yaml"),
        Fixture("check-plugin", "@none.so"),
        Fixture("read", "clients", "ada", reply: record),
        Fixture("read", "clients", "nobody", reply: missing),
        Fixture("read", "clients", "ada", "-o", "yaml", reply: record),
        Fixture("update", "clients", "ada", "1", reply: #"{"revision":"06f1c3"}"#),
        Fixture("upsert", "clients", "ada", "1", reply: #"{"revision":"06f1c4","created":true}"#),
        Fixture(
            "patch", "clients", "ada", #"{"age":37}"#,
            reply: #"{"revision":"06f1c5","item":{"name":"Ada Lovelace","age":37}}"#),
        Fixture("touch", "clients", "ada", "--ttl", "60", reply: #"{"revision":"06f1c6"}"#),
        Fixture("delete", "clients", "ada", reply: "{}"),
        Fixture("exists", "clients", "ada", reply: #"{"exists":true}"#),
        Fixture("query", "clients", reply: page),
        Fixture("query", "clients", reply: #"{"records":[]}"#),
        Fixture("count", "clients", reply: #"{"count":208810}"#),
        Fixture("delete-matching", "clients", "--all", "--yes", reply: #"{"deleted":3}"#),
        Fixture(
            "batch", "@operations",
            reply: #"{"results":[{"revision":"06f1c9"},{"error":{"code":-32002,"message":"it exists","#
                + #""data":{"name":"record_exists"}}}]}"#),
        Fixture("collections", reply: list),
        Fixture(
            "describe", "clients",
            reply: #"{"name":"clients","backend":"main","format":"json","indexes":["name"],"#
                + #""changes":{"retention":604800},"capabilities":["transactions","indexes","expiry"],"#
                + #""indexing":[{"property":"name","state":"building","indexed":17,"total":100}],"count":100}"#),
        Fixture("drop", "clients", "--yes", reply: #"{"dropped":true}"#),
        Fixture("reindex", "clients", reply: "{}"),
        Fixture(
            "backends",
            reply: #"{"backends":[{"name":"main","plugin":"sqlite","isolation":"inline","state":"ready","restarts":0,"#
                + #""path":"/var/lib/crudd/main.sqlite","bytes":480247808,"freeBytes":107374182400,"#
                + #""capabilities":["transactions","indexes"]},{"name":"far","plugin":"postgresql","#
                + #""isolation":"process","state":"down","restarts":2,"pid":4711,"#
                + #""lastError":"the server closed the connection","capabilities":[]}]}"#),
        Fixture(
            "backup", "main", "/var/backups",
            reply: #"{"path":"/var/backups/main-20261124T133827Z.sqlite","bytes":480247808}"#),
        Fixture(
            "plugins",
            reply: #"{"plugins":[{"name":"sqlite","version":"1.0","path":"/usr/lib/crudd/plugins/sqlite.so","#
                + #""capabilities":["transactions"]}]}"#),
        Fixture("ping", reply: "{}"),
        Fixture(
            "status",
            reply: #"{"version":"1.0.0","pid":4711,"uptimeSeconds":86400,"sessions":3,"backends":{"main":"ready"},"#
                + #""notices":{},"cache":{"hits":10,"misses":1,"evictions":0,"records":1,"bytes":4096,"#
                + #""maximumBytes":67108864},"moves":[{"collection":"clients","from":{"backend":"main","format":"#
                + #""json"},"to":{"backend":"archive","format":"xml"},"phase":"suspended","copied":17,"total":100,"#
                + #""reason":"the server closed the connection"}],"removals":[],"catalog":{"state":"ready"},"#
                + #""configuration":"/etc/crudd/crudd.yaml"}"#),
        Fixture(
            "sessions",
            reply: #"{"sessions":[{"id":17,"uid":0,"user":"root","client":"crudctl/1.0.0","connectedAt":1795527507443,"#
                + #""inflight":1,"followers":0,"requests":12,"receivedBytes":123456,"sentBytes":2048,"heldBytes":0},"#
                + #"{"id":18,"uid":1000,"user":"shop","client":"","connectedAt":1795527507443,"inflight":0,"#
                + #""followers":2,"requests":99,"receivedBytes":1,"sentBytes":2,"heldBytes":3,"requestsPerSecond":500,"#
                + #""refusedRequests":7,"quotas":{"collections":{"used":3,"maximum":10}}}]}"#),
        Fixture(
            "slow",
            reply: #"{"entries":[{"at":1795527507443,"method":"record.query","collection":"clients","seconds":1.25,"#
                + #""waited":7.8e-05,"uid":0,"client":"nightly/2","filter":"zip = ? AND note LIKE ?","#
                + #""sort":"age DESC","returned":3,"plan":{"index":null,"sort":"host","scanned":200000}}]}"#),
        Fixture("metrics", reply: ##"{"text":"# TYPE crudd_sessions gauge\ncrudd_sessions 1\n# EOF\n"}"##),
        Fixture(
            "reload", "--move", "--detach",
            reply: #"{"changes":["backend other: added","collection a: moves"],"moves":["a"],"cancelled":[]}"#),
        Fixture(
            "reload", "--dry-run",
            reply: #"{"changes":["backend other: added"],"moves":["a"],"cancelled":[],"refusals":[],"moving":["#
                + #"{"collection":"a","from":{"backend":"main","format":"json"},"to":{"backend":"main","#
                + #""format":"xml"},"records":3,"format":{"checked":3,"complete":true,"refused":1,"#
                + #""first":[{"id":"odd","reason":"XML cannot hold a control character"}]}}],"orphaned":[],"#
                + #""indexing":[],"losses":["access: everybody loses write"]}"#),
        Fixture(
            "config",
            reply: #"{"file":"/etc/crudd/crudd.yaml","settings":[{"key":"socket.path","value":"/run/crudd/crudd.sock","#
                + #""source":"default"},{"key":"limits.frame_bytes","value":"1MiB","source":"file"}]}"#),
        Fixture("log-level", "debug", reply: #"{"level":"debug","former":"info"}"#),
        Fixture(
            "whoami",
            reply: #"{"session":3,"uid":0,"groups":[0],"access":[{"allow":["read","write","admin"]}]}"#),
        Fixture(
            "can", "root", "daemon.reload",
            reply: #"{"allowed":false,"uid":0,"requires":["admin"],"has":["read","write"]}"#),
        Fixture("call", "daemon.ping", reply: #"{"pong":[1,2]}"#),
        Fixture("ping", reply: forbidden),
    ]

    @Test func everyCommandHasAFixture() {
        let tried = Set(Self.fixtures.map { $0.words[0] })
        #expect(tried.union(["top"]) == Set(Crudctl.commandNames))
    }

    @Test(arguments: [UInt16(80), 200])
    func printsAsBefore(_ columns: UInt16) throws {
        let directory = try TemporaryDirectory()
        for (name, content) in Self.files {
            try Files.write(content.replacing("@", with: directory.path), to: "\(directory.path)/\(name)")
        }
        try Files.makeDirectory("\(directory.path)/plugins")
        try Files.copy(
            BuildProducts.path(of: "libmemory.so"), to: "\(directory.path)/plugins/memory.so", mode: 0o755)
        var text = ""
        for fixture in Self.fixtures {
            let daemon = try Self.daemon(fixture.replies)
            let words = fixture.words.map { $0.hasPrefix("@") ? "\(directory.path)/\($0.dropFirst())" : $0 }
            let run = try CrudctlProgram.terminal(
                [CrudctlProgram.path] + words + ["--socket", daemon.path, "--no-color"], columns: columns, rows: 60,
                environment: ["TZ": "UTC", "EDITOR": "sed -i s/36/37/"])
            let screen = Self.lasting(run.screen).replacing(directory.path, with: "DIRECTORY")
            text += "$ crudctl \(fixture.words.joined(separator: " "))\n\(screen)"
            if run.status != .exited(0) { text += "status: \(run.status)\n" }
            text += "\n"
            let width = screen.split(separator: "\n").map { String($0).displayWidth }.max() ?? 0
            // What is printed as it is, and messages, which the terminal wraps.
            let isWhole = ["metrics", "call", "dump", "watch", "check-config"].contains(fixture.words[0])
            #expect(isWhole || screen.contains("crudctl: ") || width <= Int(columns), "\(fixture.words): \(width)")
        }
        try Self.compare(text, "\(columns).txt")
    }

    /// The screen when the third metrics have come, and no further ones.
    @Test(arguments: [(columns: 80, rows: 24), (200, 50)])
    func showsTheSameOfALiveDaemon(_ size: (columns: Int, rows: Int)) throws {
        let daemon = try ScriptedDaemon { listener in
            var peer = try listener.accept()
            var start = timespec()
            clock_gettime(CLOCK_REALTIME, &start)
            // For hours it has been up for as many days.
            let metrics = TopScreenTests.constant(start: Double(start.tv_sec - 4 * 86400 - 3600))
            let reply = #"{"text":\#(JSON.quote(metrics))}"#
            try peer.reply(to: peer.request(), reply)
            // What follows the first ones comes by a connection of its own.
            peer = try listener.accept()
            for _ in 0..<2 { try peer.reply(to: peer.request(), reply) }
            try peer.drain()
        }
        let terminal = try Tmux(
            width: size.columns, height: size.rows, environment: ChildProcess.baseEnvironment)
        try terminal.enter("exec \(CrudctlProgram.path) top --timeout 100 --socket \(daemon.path)")
        // Two rates are known of the third metrics.
        if Self.records { sleep(5) }
        try Self.compare(terminal, "top-\(size.columns).txt")
        withExtendedLifetime(daemon) {}
    }

    /// A completed command and what it prints, all commands, and a line that is longer than the screen.
    @Test(arguments: [(columns: 80, rows: 24), (200, 50)])
    func thePromptShowsTheSame(_ size: (columns: Int, rows: Int)) throws {
        let daemon = try ScriptedDaemon { listener in
            // Names may be asked for more than once, and in vain.
            for _ in 0..<20 {
                guard let peer = try? listener.accept() else { continue }
                while let request = try? peer.request() {
                    try? peer.reply(to: request, request.method == "collection.list" ? Self.list : Self.page)
                }
            }
        }
        let directory = try TemporaryDirectory()
        let variables = ["XDG_STATE_HOME": directory.path, "CRUDCTL_PAGER": "", "TZ": "UTC"]
        let terminal = try Tmux(
            width: size.columns, height: size.rows, environment: ChildProcess.baseEnvironment.merging(variables) { $1 })
        try terminal.enter("clear; exec \(CrudctlProgram.path) --no-color --socket \(daemon.path)")
        try terminal.wait(for: "the prompt") { $0.last == "crudctl>" }
        try terminal.press("quer\tcl")
        try terminal.complete("the name") { $0.last?.hasSuffix("query clients") == true }
        try terminal.press("Enter")
        try terminal.wait(for: "the records") { $0.contains { $0.hasPrefix("long ") } && $0.last == "crudctl>" }
        try terminal.press("\t\t")
        try terminal.wait(for: "all commands") { $0.contains { $0.contains("whoami") } && $0.last == "crudctl>" }
        let item = (0..<50).map { "number \($0) " }.joined()
        try terminal.press("create clients long '\"\(item)\"'")
        try terminal.wait(for: "the end of the line") { $0.last?.hasSuffix("number 49 \"'") == true }
        try terminal.press("C-a")
        try terminal.wait(for: "its beginning") { $0.last?.contains("number 0 ") == true }
        try Self.compare(terminal, "prompt-\(size.columns).txt")
        withExtendedLifetime(daemon) {}
    }

    /// A daemon that replies to one request after the other, on whichever connection.
    private static func daemon(_ replies: [String]) throws -> ScriptedDaemon<Void> {
        try ScriptedDaemon { listener in
            guard !replies.isEmpty else { return }
            var peer = try listener.accept()
            for reply in replies {
                let request: ScriptedRequest
                if let next = try? peer.request() {
                    request = next
                } else {
                    peer = try listener.accept()
                    request = try peer.request()
                }
                if reply.hasPrefix(#"{"code""#) {
                    try peer.reject(request, reply)
                } else {
                    try peer.reply(to: request, reply)
                }
            }
            // Such as the question whether a collection exists, after a result that is empty.
            while let next = try? peer.request() { try peer.reject(next, forbidden) }
        }
    }

    /// What is left of lines that are drawn again and again, such as that of a progress bar.
    private static func lasting(_ screen: String) -> String {
        lines(screen).map { $0.split(separator: "\u{1B}[K").last ?? "" }.joined(separator: "\n")
    }

    private static let records = ProcessInfo.processInfo.environment["CRUDD_RECORD_GOLDEN"] == "1"

    private static func path(_ file: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Golden/\(file)").path
    }

    private static func compare(_ text: String, _ file: String) throws {
        if records { try Files.write(text, to: path(file)) }
        let (now, before) = (lines(text), lines(String(decoding: try Files.read(path(file)), as: UTF8.self)))
        for (number, lines) in zip(now, before).enumerated() where lines.0 != lines.1 {
            Issue.record("\(file): line \(number + 1) is \(lines.0), and was \(lines.1)")
            return
        }
        #expect(now.count == before.count)
    }

    /// Waits until the screen is as the file has it.
    private static func compare(_ terminal: Tmux, _ file: String) throws {
        func screen(_ lines: [String]) -> [Substring] {
            lines.map { $0.replacing(CRUDVersion.current, with: "VERSION")[...] }
        }
        if records { try Files.write(screen(terminal.lines).joined(separator: "\n"), to: path(file)) }
        let before = lines(String(decoding: try Files.read(path(file)), as: UTF8.self))
        try terminal.wait(for: "the screen of \(file)") { screen($0) == before }
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }
}
