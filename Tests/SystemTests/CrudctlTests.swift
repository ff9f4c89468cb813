import CRUDTestSupport
import Testing

/// crudctl, from the shell's point of view.
@Suite(.daemon) struct CrudctlTests {
    @Test func createsReadsUpdatesAndDeletes() throws {
        let created = try run("create", "ctl", "a", #"{"n":0.10}"#)
        #expect(created.status == .exited(0))
        #expect(created.errors.isEmpty)
        let revision = try JSON(parsing: created.output)
        #expect(revision.members?.map(\.name) == ["revision"])

        let record = try JSON(parsing: run("read", "ctl", "a").output)
        #expect(record["id"]?.string == "a")
        #expect(record["revision"]?.string == revision["revision"]?.string)
        #expect(record["item"]?["n"]?.text == "0.10")

        let current = try #require(record["revision"]?.string)
        #expect(try run("update", "ctl", "a", #"{"n":2}"#, "--if-revision", current).status == .exited(0))
        #expect(try run("upsert", "ctl", "a", #"{"n":3}"#).status == .exited(0))
        #expect(try run("read", "ctl", "a", "--raw").output.trimmed == #"{"n":3}"#)
        #expect(try run("delete", "ctl", "a").status == .exited(0))
        #expect(try run("read", "ctl", "a").status == .exited(66))
    }

    @Test func takesItemsFromEverywhere() throws {
        let directory = try TemporaryDirectory()
        try Files.write("[1,2]\n", to: "\(directory.path)/item.json")
        #expect(try run("create", "sources", "file", "@\(directory.path)/item.json").status == .exited(0))
        #expect(try run("create", "sources", "dash", "-", input: "[3]").status == .exited(0))
        #expect(try run("create", "sources", "nothing", input: "\"4\"\n").status == .exited(0))
        #expect(try run("create", "sources", "argument", "1e400").status == .exited(0))
        for (id, item) in [("file", "[1,2]"), ("dash", "[3]"), ("nothing", "\"4\""), ("argument", "1e400")] {
            #expect(try run("read", "sources", id, "--raw").output.trimmed == item)
        }
    }

    @Test func readsFieldsAndKeepsNastyNames() throws {
        let item = #"{"a":1,"b":{"c":2,"d":3}}"#
        #expect(try run("create", "Clients Database", "../../etc/passwd", item).status == .exited(0))
        let record = try JSON(
            parsing: run("read", "Clients Database", "../../etc/passwd", "--fields", "a,b.c").output)
        #expect(try record["item"]?.means(JSON(parsing: #"{"a":1,"b":{"c":2}}"#)) == true)
    }

    @Test(arguments: ["json", "ndjson", "table", "yaml"])
    func listsInEveryFormat(format: String) throws {
        #expect(try run("upsert", "listed", "a", "1").status == .exited(0))
        for (command, word) in [("collections", "listed"), ("backends", "main"), ("plugins", "sqlite")] {
            let outcome = try run(command, "-o", format)
            #expect(outcome.status == .exited(0))
            #expect(outcome.output.contains(word), "\(command) \(format)")
            if format == "json" { _ = try JSON(parsing: outcome.output) }
            if format == "ndjson" {
                for line in outcome.output.split(separator: "\n") { _ = try JSON(parsing: String(line)) }
            }
        }
        let record = try run("read", "listed", "a", "--output", format)
        #expect(record.status == .exited(0))
        #expect(!record.output.contains("\u{1B}"), "colours belong on a terminal")
    }

    @Test func asksTheDaemon() throws {
        #expect(try run("ping").status == .exited(0))
        let status = try JSON(parsing: run("status").output)
        #expect(status["pid"]?.integer == Int(try Daemon.shared.process.pid))
    }

    @Test func callsAnyMethod() throws {
        #expect(try run("call", "daemon.ping").output.trimmed == "{}")
        let outcome = try run("call", "record.upsert", #"{"collection":"called","id":"a","item":1}"#)
        #expect(try JSON(parsing: outcome.output)["created"]?.boolean == true)
    }

    @Test func exitStatusesTellWhatHappened() throws {
        #expect(try run("create", "exits", "a", "1").status == .exited(0))
        let cases: [(arguments: [String], status: Int32, name: String)] = [
            (["call", "no.such.method"], 65, "method_not_found"),
            (["call", "record.read", "{}"], 65, "invalid_params"),
            (["read", "exits", ""], 65, "invalid_params"),
            (["read", "exits", "missing"], 66, "record_not_found"),
            (["delete", "exits", "missing"], 66, "record_not_found"),
            (["update", "exits", "missing", "1"], 66, "record_not_found"),
            (["create", "exits", "a", "1"], 73, "record_exists"),
            (["update", "exits", "a", "1", "--if-revision", "x"], 75, "revision_mismatch"),
            (["upsert", "exits", "missing", "1", "--if-revision", "x"], 75, "revision_mismatch"),
            (["delete", "exits", "a", "--if-revision", "x"], 75, "revision_mismatch"),
        ]
        for one in cases {
            let outcome = try run(arguments: one.arguments)
            #expect(outcome.status == .exited(one.status), "\(one.arguments): \(outcome.errors)")
            #expect(outcome.output.isEmpty)
            #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
            #expect(outcome.errors.hasPrefix("crudctl: \(one.name): "), "\(outcome.errors)")
            let explicit = try run(arguments: one.arguments + ["-o", "json"])
            #expect(explicit.status == .exited(one.status))
            #expect(explicit.output.isEmpty)
            #expect(try JSON(parsing: explicit.errors)["data"]?["name"]?.string == one.name, "\(explicit.errors)")
        }
    }

    @Test func wrongUsageIs64() throws {
        for arguments in [
            ["frobnicate"], ["read"], ["read", "c"], ["ping", "--no-such-option"], ["ping", "-o", "xml"],
            ["ping", "--timeout", "soon"],
        ] {
            let outcome = try run(arguments: arguments)
            #expect(outcome.status == .exited(64), "\(arguments): \(outcome.errors)")
            #expect(outcome.output.isEmpty)
            #expect(outcome.errorLines.count == 1 && outcome.errors.hasPrefix("crudctl: invalid_params: "))
        }
    }

    @Test func unmappedCollectionsAre66() throws {
        let daemon = try Daemon(Configuration(collections: "named: {backend: main}"))
        let outcome = try run("read", "other", "a", socket: daemon.socketPath)
        #expect(outcome.status == .exited(66))
        #expect(outcome.errors.hasPrefix("crudctl: collection_not_found: "))
    }

    @Test func aDaemonThatIsNotThereIs69() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/none.sock"
        let outcome = try run("ping", socket: path)
        #expect(outcome.status == .exited(69))
        #expect(outcome.errors.contains(path))
        // Nothing listens behind a stale socket either.
        withExtendedLifetime(try Descriptor.listener(at: path)) {}
        #expect(try run("ping", socket: path).status == .exited(69))
    }

    @Test func aDaemonThatDoesNotReplyIs75() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/silent.sock"
        let listener = try Descriptor.listener(at: path)
        #expect(try run("ping", "--timeout", "1", socket: path).status == .exited(75))
        withExtendedLifetime(listener) {}
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to run as another user"))
    func whatIsNotAllowedIs77() throws {
        let daemon = try Daemon(
            Configuration(socket: #"mode: "0666""#, access: "- {users: [1], allow: [read, write]}"))
        let directory = try TemporaryDirectory()
        let crudctl = try BuildProducts.copy(of: "crudctl", to: directory)
        let nobody = Peer(user: 65534, group: 65534).command
        for arguments in [["read", "c", "a"], ["create", "c", "a", "1"], ["status"], ["backends"], ["plugins"]] {
            let outcome = try Command.run(
                nobody.path, nobody.arguments + [crudctl, "--socket", daemon.socketPath] + arguments)
            #expect(outcome.status == .exited(77), "\(arguments): \(outcome.errors)")
            #expect(outcome.errors.hasPrefix("crudctl: permission_denied: "))
        }
    }

    @Test func theSocketComesFromTheOptionOrTheEnvironment() throws {
        let crudctl = try BuildProducts.path(of: "crudctl")
        let path = try Daemon.shared.socketPath
        #expect(try Command.run(crudctl, ["ping"], environment: ["CRUDD_SOCKET": path]).status == .exited(0))
        let wrong = ["CRUDD_SOCKET": "/no/such/socket"]
        #expect(try Command.run(crudctl, ["ping", "--socket", path], environment: wrong).status == .exited(0))
        #expect(try Command.run(crudctl, ["ping"], environment: wrong).status == .exited(69))
    }

    @Test func checksConfigurationsWithoutADaemon() throws {
        let installation = try Installation()
        let crudctl = try BuildProducts.path(of: "crudctl")
        for format in [[], ["-o", "json"]] {
            let outcome = try Command.run(crudctl, ["check-config", installation.configurationFile] + format)
            #expect(outcome.status == .exited(0) && outcome.output.isEmpty && outcome.errors.isEmpty)
        }
        let marked = MarkedText(Configuration(limits: "json_depth: ¶5000\n¶sesions: 5").text)
        try installation.configure(text: marked.text)
        let outcome = try Command.run(crudctl, ["check-config", installation.configurationFile])
        #expect(outcome.status == .exited(78))
        for position in marked.positions {
            #expect(outcome.errors.contains("\(installation.configurationFile):\(position): "), "\(outcome.errors)")
        }

        let asJSON = try Command.run(crudctl, ["check-config", installation.configurationFile, "-o", "json"])
        #expect(asJSON.status == .exited(78) && asJSON.output.isEmpty)
        let error = try JSON(parsing: asJSON.errors)
        #expect(error["data"]?["name"]?.string == "invalid_configuration")
        let details = error["data"]?["details"]
        #expect(details?["file"]?.string == installation.configurationFile)
        let position = [details?["line"]?.text, details?["column"]?.text].compactMap { $0 }.joined(separator: ":")
        #expect(position == marked.positions.first)
        #expect(error["message"]?.string == outcome.errorLines.joined(separator: "; "))
    }

    /// Whatever the path is, it is no option of the program that checks it.
    @Test(arguments: [["check-config"], ["check-plugin"]])
    func checksPathsThatBeginWithADash(_ command: [String]) throws {
        let crudctl = try BuildProducts.path(of: "crudctl")
        for format in [[], ["-o", "json"]] {
            let outcome = try Command.run(crudctl, command + format + ["--", "--x.so"])
            #expect(outcome.status == .exited(78))
            #expect(outcome.errors.contains("./--x.so") && outcome.errorLines.count == 1, "\(outcome.errors)")
            if !format.isEmpty {
                #expect(try JSON(parsing: outcome.errors)["data"]?["name"]?.string == "invalid_configuration")
            }
        }
    }

    /// Under this program's name and that of an error, in every form of output.
    @Test(arguments: [[], ["-o", "table"], ["-o", "ndjson"]])
    func saysWhyAPluginCannotBeChecked(_ format: [String]) throws {
        let words = ["check-plugin", try BuildProducts.path(of: "libsqlite.so"), "--options"]
        let outcome = try Command.run(BuildProducts.path(of: "crudctl"), words + ["{path: here}"] + format)
        #expect(outcome.status == .exited(78))
        let reason = #"the plugin does not open its storage: option "path" must be an absolute path (option /path)"#
        #expect(outcome.errors == "crudctl: invalid_configuration: \(reason)\n")
    }

    @Test func printsTheReportOfAPlugin() throws {
        let outcome = try Command.run(
            BuildProducts.path(of: "crudctl"), ["check-plugin", BuildProducts.path(of: "libmemory.so"), "-o", "json"])
        #expect(outcome.status == .exited(0) && outcome.errors.isEmpty, "\(outcome.errors)")
        let report = try JSON(parsing: outcome.output)
        #expect(report["version"]?.string != nil && report["capabilities"]?.elements?.isEmpty == false)
        let checks = report["checks"]?.elements ?? []
        #expect(checks.contains { $0.text == #"{"check":"json: counting","outcome":"passed"}"# })
    }

    @Test func tellsVersionUsageAndCompletions() throws {
        for arguments in [["--version"], ["--help"], ["create", "--help"]]
            + ["bash", "zsh", "fish"].map({ ["--generate-completion-script", $0] })
        {
            let outcome = try Command.run(BuildProducts.path(of: "crudctl"), arguments)
            #expect(outcome.status == .exited(0), "\(arguments)")
            #expect(!outcome.output.isEmpty)
            #expect(outcome.errors.isEmpty)
        }
    }

    @Test func theDemonstrationRuns() throws {
        let daemon = try Daemon()
        let outcome = try Command.run(
            BuildProducts.path(of: "demo-app"), [], environment: ["CRUDD_SOCKET": daemon.socketPath])
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
        #expect(!outcome.output.isEmpty)
        let collections = try daemon.connect().call("collection.list").result?["collections"]?.elements
        #expect(collections?.isEmpty == false, "it has stored nothing")
    }

    private func run(_ arguments: String..., socket: String? = nil, input: String = "") throws -> Command.Outcome {
        try run(arguments: arguments, socket: socket, input: input)
    }

    private func run(arguments: [String], socket: String? = nil, input: String = "") throws -> Command.Outcome {
        let path = try socket ?? Daemon.shared.socketPath
        return try Command.run(
            BuildProducts.path(of: "crudctl"), arguments, environment: ["CRUDD_SOCKET": path], input: input)
    }
}

extension String {
    /// Without the line's end.
    fileprivate var trimmed: String { hasSuffix("\n") ? String(dropLast()) : self }
}
