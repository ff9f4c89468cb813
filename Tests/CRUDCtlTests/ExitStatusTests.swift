import CRUDTestSupport
import ScriptedDaemon
import Testing

/// Exit statuses and errors of `crudctl`.
@Suite struct ExitStatusTests {
    @Test(arguments: [
        (-32700, "parse_error", 65), (-32600, "invalid_request", 65), (-32601, "method_not_found", 65),
        (-32602, "invalid_params", 65), (-32603, "internal_error", 70), (-32001, "record_not_found", 66),
        (-32002, "record_exists", 73), (-32003, "revision_mismatch", 75), (-32004, "collection_not_found", 66),
        (-32005, "permission_denied", 77), (-32006, "unsupported", 65), (-32007, "limit_exceeded", 65),
        (-32008, "unavailable", 69), (-32009, "outcome_unknown", 74), (-32010, "invalid_query", 65),
        (-32011, "corrupt", 70), (-32012, "no_space", 75), (-32013, "invalid_configuration", 78),
        (-32014, "cursor_expired", 65),
    ])
    func saysWhatHappened(_ code: Int, _ name: String, _ status: Int32) async throws {
        let error = #"{"code":\#(code),"message":"so\nit is","data":{"name":"\#(name)","retryable":false}}"#
        let daemon = try ScriptedDaemon(replying: error)
        let run = try CrudctlProgram.run(["read", "c", "x", "--socket", daemon.path])
        #expect(run.status == .exited(status))
        #expect(run.output == "")
        #expect(run.errors == "crudctl: \(name): so\\nit is\n")
        _ = try await daemon.finish()
    }

    @Test func printsTheErrorObjectWhereJSONWasAskedFor() async throws {
        let error =
            #"{"code":-32003,"message":"changed","data":{"name":"revision_mismatch","retryable":false,"#
            + #""details":{"revision":"7"}}}"#
        let daemon = try ScriptedDaemon(replying: error)
        let run = try CrudctlProgram.run(["-o", "json", "delete", "c", "x", "--socket", daemon.path])
        #expect(run.status == .exited(75))
        #expect(run.output == "")
        #expect(run.errors == error + "\n")
        _ = try await daemon.finish()
    }

    @Test func saysWhereNoDaemonIs() async throws {
        let path = "/nowhere/crudd.sock"
        let run = try CrudctlProgram.run(["ping"], environment: ["CRUDD_SOCKET": path])
        #expect(run.status == .exited(69))
        let message = "cannot connect to the daemon at \(path): No such file or directory; is crudd running?"
        #expect(run.errors == "crudctl: unavailable: \(message)\n")
    }

    @Test func givesUpAfterTheTimeout() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.request()
            try peer.awaitClosing()
        }
        let run = try CrudctlProgram.run(["ping", "--timeout", "5", "--socket", daemon.path])
        #expect(run.status == .exited(75))
        #expect(run.errors == "crudctl: timed_out: daemon.ping got no reply by its deadline\n")
        try await daemon.finish()
    }

    @Test(arguments: [
        ["frobnicate"], ["read"], ["read", "c"], ["exists", "c", "x", "y"], ["ping", "--unknown"],
        ["read", "c", "x", "--raw", "--fields", ""],
        ["ping", "-o", "xml"], ["ping", "--timeout", "0"], ["ping", "--timeout", "soon"], ["ping", "--timeout", "-1"],
        ["create", "c", "x", "@/nowhere/item.json"], ["dump"], ["dump", "c", "--all"], ["reload", "--detach"],
        ["load", "--create", "--upsert"], ["delete-matching", "c", "--yes"],
        ["delete-matching", "c", "--prefix", "", "--yes"], ["delete-matching", "c", "--where", "TRUE", "--yes"],
        ["delete-matching", "c", "--prefix", "", "--where", "NOT FALSE", "--yes"],
        ["delete-matching", "c", "--prefix", "", "--all", "--yes"],
    ])
    func refusesWrongUsage(_ arguments: [String]) async throws {
        let run = try CrudctlProgram.run(arguments, environment: ["CRUDD_SOCKET": "/nowhere"])
        #expect(run.status == .exited(64))
        #expect(run.output == "")
        #expect(run.errors.hasPrefix("crudctl: invalid_params: "))
        #expect(run.errors.hasSuffix("\n") && run.errors.count { $0 == "\n" } == 1, "\(run.errors)")
        for format in [["-o", "json"], ["--output=json"]] {
            let run = try CrudctlProgram.run(format + arguments, environment: ["CRUDD_SOCKET": "/nowhere"])
            guard arguments != ["ping", "-o", "xml"] else { continue }
            #expect(run.status == .exited(64))
            let error = try JSON(parsing: run.errors)
            #expect(error["code"]?.integer == -32602)
            #expect(error["data"]?["name"]?.string == "invalid_params")
        }
    }

    @Test(arguments: [
        (["raed", "c", "x"], #"unknown command "raed", did you mean "read"?"#),
        (["--socket", "/x", "-o=table", "delete-maching"], #"did you mean "delete-matching"?"#),
        (["statsu"], #"did you mean "status"?"#), (["hlep"], #"did you mean "help"?"#),
        (["quer", "--help"], #"unknown command "quer", did you mean "query"?"#),
        (["help", "quer"], #"unknown command "quer", did you mean "query"?"#),
        (["help", "-o", "ndjson", "quer"], #"unknown command "quer", did you mean "query"?"#),
        (["query", "c", "--sort", "name desc"], "--sort -name in descending order"),
        (["query", "c", "--sort", "age,name ASC"], "--sort name sorts in ascending order"),
        (["xyzzyxyzzyxyzzyxyzzy"], "crudctl --help lists all commands"),
        (["read", "c"], "(see crudctl read --help)"), (["ping", "--tiemout", "5"], "--timeout"),
    ])
    func saysWhatWasMeant(_ arguments: [String], _ hint: String) throws {
        let run = try CrudctlProgram.run(arguments)
        #expect(run.status == .exited(64))
        #expect(run.output == "")
        #expect(run.errors.contains(hint), "\(run.errors)")
    }

    @Test func rejectsArgumentsThatAreNotUTF8() throws {
        let line = #""$0" upsert c "$(printf 'a\377')" 1 --socket /nowhere"#
        let run = try Command.run("sh", ["-c", line, CrudctlProgram.path])
        #expect(run.status == .exited(64))
        #expect(run.errors == "crudctl: invalid_params: argument 3 is not valid UTF-8 (see crudctl upsert --help)\n")
        let asJSON = try Command.run("sh", ["-c", line + " --output json", CrudctlProgram.path])
        #expect(asJSON.status == .exited(64))
        #expect(try JSON(parsing: asJSON.errors)["data"]?["name"]?.string == "invalid_params")
    }

    @Test func anOverdueWriteIsNotATimeout() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.request()
            try peer.awaitClosing()
        }
        let run = try CrudctlProgram.run(["delete", "c", "x", "--timeout", "5", "--socket", daemon.path])
        #expect(run.status == .exited(74))
        #expect(run.errors.hasPrefix("crudctl: outcome_unknown: "))
        try await daemon.finish()
    }

    /// Runs a line of shell in which `$0` is crudctl and `$1` the daemon's socket.
    private func shell(_ line: String, _ daemon: ScriptedDaemon<[String]>) throws -> Command.Outcome {
        try Command.run("sh", ["-c", line, CrudctlProgram.path, daemon.path])
    }

    @Test func diesQuietlyOfABrokenPipe() async throws {
        let daemon = try ScriptedDaemon(replying: "[" + String(repeating: "0,", count: 200_000) + "0]")
        let run = try shell(#"{ "$0" call x --socket "$1"; echo $? >&2; } | head -c 1"#, daemon)
        #expect(run.output == "[")
        // 128 + SIGPIPE, without a message.
        #expect(run.errors == "141\n")
        _ = try await daemon.finish()
    }

    /// Not by `no_space`, which would promise that nothing was applied.
    @Test func saysThatTheResultCannotBeWritten() async throws {
        let daemon = try ScriptedDaemon(replying: #"{"revision":"1"}"#, #"{"revision":"2"}"#)
        let message = "cannot write the result: No space left on device"
        let run = try shell(#""$0" upsert c x 1 --socket "$1" > /dev/full"#, daemon)
        #expect(run.status == .exited(70))
        #expect(run.errors == "crudctl: internal_error: \(message)\n")
        let asJSON = try shell(#""$0" upsert c x 1 -o json --socket "$1" > /dev/full"#, daemon)
        #expect(asJSON.status == .exited(70))
        let error = try JSON(parsing: asJSON.errors)
        #expect(error["code"]?.integer == -32603 && error["message"]?.string == message)
        #expect(error["data"]?["retryable"]?.boolean == false)
        _ = try await daemon.finish()
    }
}
