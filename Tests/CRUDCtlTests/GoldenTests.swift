import CRUDTestSupport
import Foundation
import ScriptedDaemon
import Testing

@testable import crudctl

/// What each command prints on a terminal of 80 and of 200 columns, compared with `Golden/COLUMNS.txt`. With
/// `CRUDD_RECORD_GOLDEN=1` these files are written anew, to be read before they are committed.
@Suite struct GoldenTests {
    /// A command and what the daemon replies.
    struct Fixture: Sendable {
        let words: [String]
        let reply: String

        init(_ words: String..., reply: String) {
            self.words = words
            self.reply = reply
        }
    }

    /// Commands whose output has tests of its own: they make several calls, follow something, or call no daemon.
    private static let others: Set<String> = [
        "edit", "watch", "dump", "load", "import", "top", "check-config", "check-plugin",
    ]

    private static let record =
        #"{"id":"ada","item":{"name":"Ada Lovelace","age":36,"tags":["a","b"]},"revision":"06f1c2","#
        + #""expiresAt":1795527507443}"#
    private static let missing =
        #"{"code":-32001,"message":"there is no record \"nobody\" in collection \"clients\"","#
        + #""data":{"name":"record_not_found"}}"#

    private static let fixtures = [
        Fixture("create", "clients", "ada", "1", reply: #"{"revision":"06f1c2"}"#),
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
        Fixture(
            "query", "clients",
            reply: #"{"records":[\#(record),{"id":"日本","item":[1,2,{"a":null}],"revision":"06f1c7"},"#
                + #"{"id":"long","item":{"name":"\#(String(repeating: "long ", count: 50))"},"revision":"06f1c8"}],"#
                + #""cursor":"next"}"#),
        Fixture("query", "clients", reply: #"{"records":[]}"#),
        Fixture("count", "clients", reply: #"{"count":208810}"#),
        Fixture("delete-matching", "clients", "--all", "--yes", reply: #"{"deleted":3}"#),
        Fixture(
            "batch", "@OPERATIONS",
            reply: #"{"results":[{"revision":"06f1c9"},{"error":{"code":-32002,"message":"it exists","#
                + #""data":{"name":"record_exists"}}}]}"#),
        Fixture(
            "collections",
            reply: #"{"collections":[{"name":"clients","backend":"main","format":"json","indexes":["name","age"]},"#
                + #"{"name":"a collection with a rather long name","backend":"archive","format":"xml","#
                + #""indexes":[]}]}"#),
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
                + #""maximumBytes":67108864},"moves":[],"removals":[],"catalog":{"state":"ready"},"#
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
        Fixture(
            "ping",
            reply: #"{"code":-32005,"message":"the access rules do not allow you this","#
                + #""data":{"name":"permission_denied"}}"#),
    ]

    @Test func everyCommandHasAFixture() {
        let tried = Set(Self.fixtures.map { $0.words[0] })
        #expect(tried.union(Self.others) == Set(Crudctl.commandNames) && tried.isDisjoint(with: Self.others))
    }

    @Test(arguments: [UInt16(80), 200])
    func printsAsBefore(_ columns: UInt16) throws {
        let directory = try TemporaryDirectory()
        let operations = "\(directory.path)/operations"
        try Files.write(
            (0..<2).map { #"{"op":"create","collection":"clients","id":"\#($0)","item":1}"# + "\n" }.joined(),
            to: operations)
        var text = ""
        for fixture in Self.fixtures {
            let daemon = try ScriptedDaemon(replying: fixture.reply)
            let words = fixture.words.map { $0 == "@OPERATIONS" ? operations : $0 }
            let run = try CrudctlProgram.terminal(
                [CrudctlProgram.path] + words + ["--socket", daemon.path, "--no-color"], columns: columns, rows: 60,
                environment: ["TZ": "UTC"])
            text += "$ crudctl \(fixture.words.joined(separator: " "))\n\(run.screen)"
            if run.status != .exited(0) { text += "status: \(run.status)\n" }
            text += "\n"
            let width = run.screen.split(separator: "\n").map { String($0).displayWidth }.max() ?? 0
            let isTable = !["metrics", "call"].contains(fixture.words[0]) && !run.screen.contains("crudctl: ")
            #expect(!isTable || width <= Int(columns), "\(fixture.words): \(width)")
        }
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Golden/\(columns).txt").path
        if ProcessInfo.processInfo.environment["CRUDD_RECORD_GOLDEN"] == "1" { try Files.write(text, to: file) }
        let (now, before) = (Self.lines(text), Self.lines(String(decoding: try Files.read(file), as: UTF8.self)))
        for (number, lines) in zip(now, before).enumerated() where lines.0 != lines.1 {
            Issue.record("line \(number + 1) is \(lines.0), and was \(lines.1)")
            return
        }
        #expect(now.count == before.count)
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }
}
