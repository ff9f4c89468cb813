import CRUDTestSupport
import Glibc
import Testing

/// Commands of crudctl for one record, a collection and several operations; its errors before there is a connection.
@Suite(.daemon) struct CtlCommandTests: CrudctlSuite {
    @Test func existsTellsByItsStatus() throws {
        #expect(try run("create", "ctl-exists", "a", "1").status == .exited(0))
        let there = try run("exists", "ctl-exists", "a")
        #expect(there.status == .exited(0))
        #expect(try JSON(parsing: there.output)["exists"]?.boolean == true)
        let absent = try run("exists", "ctl-exists", "b")
        #expect(absent.status == .exited(66))
        #expect(try JSON(parsing: absent.output)["exists"]?.boolean == false)
        #expect(absent.errors.isEmpty)
    }

    @Test func messagesNameTheRecord() throws {
        #expect(try run("create", "ctl names", "é\u{200B}", "1").status == .exited(0))
        let there = #"record "é\u{200B}" in collection "ctl names""#
        let cases: [(arguments: [String], message: String)] = [
            (["create", "ctl names", "é\u{200B}", "1"], "there is already a \(there)"),
            (["delete", "ctl names", "é\u{200B}", "--if-revision", "x"], "\(there) has another revision"),
            (["read", "ctl names", "b"], #"there is no record "b" in collection "ctl names""#),
            (["update", "ctl names", "b", "2"], #"there is no record "b" in collection "ctl names""#),
            (["upsert", "ctl names", "b", "2", "--if-revision", "x"], #"there is no record "b" in collection "#),
        ]
        for one in cases {
            let outcome = try run(arguments: one.arguments)
            #expect(outcome.errors.contains(": \(one.message)"), "\(outcome.errors)")
        }
    }

    /// Where `*` maps every name, a mistyped one looks like an empty collection.
    @Test func aNameThatNothingKnowsIsNoted() throws {
        #expect(try run("create", "ctl-known", "a", "1").status == .exited(0))
        let commands: [(arguments: [String], status: Int32)] = [
            (["query", "C"], 0), (["query", "C", "--all"], 0), (["count", "C"], 0), (["describe", "C"], 0),
            (["dump", "C"], 0),
            (["read", "C", "x"], 66), (["exists", "C", "x"], 66), (["update", "C", "x", "1"], 66),
            (["delete", "C", "x"], 66),
            (["patch", "C", "x", "{}"], 66), (["delete-matching", "C", "--where", "a = 1", "--yes"], 0),
        ]
        for (arguments, status) in commands {
            for (name, isNoted) in [("ctl-nots", true), ("ctl-known", false)] {
                var words = arguments
                words[1] = name
                if !isNoted, words[0] == "query" { words += ["--where", "a = 1"] }
                let outcome = try run(arguments: words)
                #expect(outcome.status == .exited(status), "\(words): \(outcome.errors)")
                let note = "note: no rule of the configuration names \"\(name)\", and it has no records\n"
                #expect(outcome.errors.contains(note) == isNoted, "\(words): \(outcome.errors)")
                let isSilent = !isNoted && (status == 0 || words[0] == "exists")
                #expect(outcome.errors.isEmpty == isSilent, "\(words): \(outcome.errors)")
            }
        }
        #expect(try run("delete", "ctl-known", "a").status == .exited(0))
        let emptied = try run("count", "ctl-known")
        #expect(emptied.output == "{\"count\":0}\n" && emptied.errors.isEmpty, "it exists")
    }

    @Test func describesAndReindexesACollection() throws {
        #expect(try run("create", "ctl-described", "a", "1").status == .exited(0))
        let description = try JSON(parsing: run("describe", "ctl-described").output)
        #expect(description["name"]?.string == "ctl-described")
        #expect(description["count"]?.integer == 1)
        #expect(try run("reindex", "ctl-described").status == .exited(0))
    }

    /// What a shell's completion script runs when somebody presses Tab behind `crudctl describe`.
    @Test func completesCollections() throws {
        #expect(try run("create", "ctl completed", "a", "1").status == .exited(0))
        let words = ["---completion", "describe", "--", "positional@0", "2", "0", "crudctl", "describe", ""]
        // It gives up when the names take long.
        let deadline = Deadline()
        var names = try run(arguments: words)
        while !names.output.contains("ctl completed"), !deadline.hasPassed { names = try run(arguments: words) }
        #expect(names.status == .exited(0))
        #expect(names.output.split(separator: "\n").contains("ctl completed"), "\(names.output)")
        let elsewhere = try run(arguments: words.dropLast() + ["--socket", "/nowhere", ""])
        #expect(elsewhere.status == .exited(0) && elsewhere.errors.isEmpty && elsewhere.output.count <= 1)
    }

    @Test func dropsACollection() throws {
        #expect(try run("create", "ctl-dropped", "a", "1").status == .exited(0))
        #expect(try run("drop", "ctl-dropped").status == .exited(64), "without a terminal it cannot ask")
        let dropped = try run("drop", "ctl-dropped", "--yes")
        #expect(dropped.status == .exited(0), "\(dropped.errors)")
        #expect(try JSON(parsing: dropped.output)["dropped"] != nil)
        #expect(try run("exists", "ctl-dropped", "a").status == .exited(66))
    }

    @Test func executesABatch() throws {
        let operations = """
            {"op": "create", "collection": "ctl-batch", "id": "a", "item": 1.0}
            {"op": "create", "collection": "ctl-batch", "id": "a", "item": 2}

            {"op": "upsert", "collection": "ctl-batch", "id": "b", "item": 3}
            """
        let mixed = try run("batch", "-o", "ndjson", input: operations)
        #expect(mixed.status == .exited(73), "\(mixed.errors)")
        #expect(mixed.output.split(separator: "\n").count == 3)
        #expect(mixed.errors.hasPrefix("crudctl: record_exists: operation 1: "))
        #expect(try run("read", "ctl-batch", "a", "--raw").output == "1.0\n")
        #expect(try run("read", "ctl-batch", "b", "--raw").output == "3\n")
        let directory = try TemporaryDirectory()
        try Files.write(
            operations.replacing("ctl-batch", with: "ctl-atomic"), to: "\(directory.path)/operations")
        let atomic = try run("batch", "\(directory.path)/operations", "--atomic")
        #expect(atomic.status == .exited(73))
        #expect(atomic.output.isEmpty)
        #expect(try run("exists", "ctl-atomic", "b").status == .exited(66))
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to run as another user"))
    func aSocketThatMayNotBeOpenedIs77AndNamesTheGroup() throws {
        let directory = try TemporaryDirectory()
        let crudctl = try BuildProducts.copy(of: "crudctl", to: directory)
        let folder = "\(directory.path)/run"
        try Files.makeDirectory(folder)
        let listener = try Descriptor.listener(at: "\(folder)/crudd.sock")
        let group = try #require(unsafe getgrnam("daemon")).pointee.gr_gid
        let nobody = Peer(user: 65534, group: 65534).command
        for (mode, socketMode, hint) in [(0o755, 0o660, true), (0o750, 0o666, true), (0o755, 0o600, false)] {
            #expect(chmod("\(folder)/crudd.sock", mode_t(socketMode)) == 0)
            #expect(chown("\(folder)/crudd.sock", 0, group) == 0)
            #expect(chmod(folder, mode_t(mode)) == 0)
            #expect(chown(folder, 0, group) == 0)
            let arguments = ["--socket", "\(folder)/crudd.sock", "ping"]
            let outcome = try Command.run(nobody.path, nobody.arguments + [crudctl] + arguments)
            #expect(outcome.status == .exited(77), "\(outcome.errors)")
            #expect(outcome.errors.hasPrefix("crudctl: permission_denied: cannot connect to the daemon at \(folder)"))
            #expect(outcome.errors.contains("join the group daemon, ") == hint, "\(outcome.errors)")
        }
        withExtendedLifetime(listener) {}
    }

    /// libdispatch writes to the system's log where it may not set the priority of its threads; here that log is
    /// redirected.
    @Test(.enabled(if: Peer.canImpersonate, "needs root to run as another user"))
    func libdispatchHasNothingToSay() throws {
        let directory = try TemporaryDirectory()
        let crudctl = try BuildProducts.copy(of: "crudctl", to: directory)
        let nobody = Peer(user: 65534, group: 65534).command
        let outcome = try Command.run(
            nobody.path, nobody.arguments + [crudctl, "ping", "--socket", "/nowhere/crudd.sock"],
            environment: ["LIBDISPATCH_LOG": "stderr"])
        #expect(outcome.status == .exited(69))
        #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
    }
}
