import CRUDTestSupport
import Testing

/// `daemon.reload` with `dryRun`: it tells what the reload then does, and does nothing.
@Suite struct DryRunTests {
    private static let main = "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}"
    private static let other = "other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}"

    private static let old = Configuration(
        backends: main, collections: "a: {backend: main}\nb: {backend: main, indexes: [m]}\n\"*\": {backend: main}")
    private static let new = Configuration(
        backends: "\(main)\n\(other)", collections: "a: {backend: other}\nb: {backend: main, indexes: [m, n.o]}",
        access: "- {users: [0], allow: [read, write, admin]}\n- {users: [70001], allow: [read]}")

    /// A daemon with records, whose file has been changed.
    private static func daemon() throws -> Daemon {
        let daemon = try Daemon(old)
        let connection = try daemon.connect()
        for (name, count) in [("a", 3), ("b", 2), ("c", 1)] {
            for id in 0..<count { #expect(try connection.create(name, "\(id)", #"{"n":1}"#).result != nil) }
        }
        try daemon.installation.configure(new)
        return daemon
    }

    @Test func tellsWhatTheReloadDoesAndDoesNothing() throws {
        let daemon = try Self.daemon()
        let connection = try daemon.connect()
        let catalog = try Files.read("\(daemon.installation.path)/state/collections.jsonl")
        func dryRun(_ options: String) throws -> JSON {
            try #require(try connection.call("daemon.reload", "{\"dryRun\":true\(options)}").result)
        }
        let plain = try dryRun("")
        let orphan = #"{"collection":"c","backend":"main","format":"json","records":1}"#
        let stays = #"{"collection":"a","backend":"main","format":"json","records":3}"#
        #expect(plain["orphaned"]?.text == "[\(stays),\(orphan)]" && plain["moving"]?.text == "[]")
        let refusals = plain["refusals"]?.elements?.compactMap(\.string) ?? []
        #expect(
            refusals.count == 2 && refusals[0].contains("collection a has 3 records in backend main as json"),
            "\(refusals)")
        #expect(refusals.allSatisfy { $0.contains(".yaml:") }, "with positions")

        let moving = try dryRun(#","move":true"#)
        #expect(moving["orphaned"]?.text == "[\(orphan)]" && moving["refusals"]?.elements?.count == 1)
        let forced = try dryRun(#","move":true,"force":true"#)
        #expect(forced["orphaned"]?.text == "[\(orphan)]" && forced["refusals"]?.text == "[]")
        let move =
            #"[{"collection":"a","from":{"backend":"main","format":"json"},"to":{"backend":"other","format":"json"},"#
            + #""records":3}]"#
        #expect(forced["moving"]?.text == move)
        #expect(forced["indexing"]?.text == #"[{"collection":"b","property":"n.o","records":2}]"#)
        #expect(forced["losses"]?.elements?.first?.string?.hasPrefix("access: everybody loses read and write") == true)

        #expect(try Files.read("\(daemon.installation.path)/state/collections.jsonl") == catalog)
        #expect(!Files.exists("\(daemon.installation.path)/other.sqlite"))
        #expect(try connection.call("backend.list").result?["backends"]?.elements?.count == 1)
        #expect(try connection.item("c", "0") == #"{"n":1}"#)
        #expect(!daemon.log.contains("reload"), "nothing has been")

        let reload = try #require(try connection.call("daemon.reload", #"{"move":true,"force":true}"#).result)
        for member in ["changes", "moves", "cancelled"] { #expect(reload[member]?.text == forced[member]?.text) }
        #expect(reload["moves"]?.text == #"["a"]"# && reload["refusals"] == nil)
    }

    @Test func crudctlPrintsIt() throws {
        let daemon = try Self.daemon()
        func run(_ arguments: String...) throws -> Command.Outcome {
            try Command.run(
                BuildProducts.path(of: "crudctl"), ["reload", "--dry-run"] + arguments,
                environment: ["CRUDD_SOCKET": daemon.socketPath])
        }
        let forced = try run("--move", "--force", "-o", "table")
        #expect(forced.status == .exited(0) && forced.errors.isEmpty, "\(forced.errors)")
        let sections = """
            moves:
              "a": 3 records from backend main as json to backend other as json
            records that are orphaned:
              "c": 1 record in backend main as json
            indexes that are built:
              "b": "n.o" of 2 records

            """
        #expect(forced.output.hasPrefix("changes:\n  backend other: added\n"), "\(forced.output)")
        #expect(forced.output.contains("\naccess lost:\n  access: everybody loses read and write"))
        #expect(forced.output.hasSuffix(sections), "\(forced.output)")
        let plain = try run()
        #expect(plain.status == .exited(78))
        #expect(plain.errorLines.count == 2, "one line for each reason: \(plain.errors)")
        #expect(plain.errorLines.allSatisfy { $0.hasPrefix("crudctl: the reload would be rejected: ") })
        try daemon.installation.configure(Self.old)
        #expect(try run("-o", "table").output == "nothing changes\n")
    }

    /// All errors, one a line, of a dry run and of a reload.
    @Test(arguments: [["--dry-run"], []])
    func errorsOfTheFileAreLines(_ options: [String]) throws {
        let daemon = try Daemon(Self.old)
        let limits = (0..<20).map { "x\($0): 1" }.joined(separator: ", ")
        var changed = Self.old
        changed.requestTimeout = nil
        try daemon.installation.configure(text: changed.text + "limits: {\(limits)}\n")
        let outcome = try Command.run(
            BuildProducts.path(of: "crudctl"), ["reload"] + options,
            environment: ["CRUDD_SOCKET": daemon.socketPath])
        #expect(outcome.status == .exited(78) && outcome.output.isEmpty)
        #expect(outcome.errorLines.count == 20, "\(outcome.errors)")
        #expect(outcome.errorLines.allSatisfy { $0.hasPrefix("crudctl: invalid_configuration: ") })
        let error = try #require(try daemon.connect().call("daemon.reload").error)
        #expect(error.details?["errors"]?.elements?.count == 20)
    }
}
