import Foundation
import ScriptedDaemon
import Testing

/// How `crudctl` ends when something goes wrong.
@Suite struct ExitStatusTests {
    @Test(arguments: [
        (-32700, "parse_error", 65), (-32600, "invalid_request", 65), (-32601, "method_not_found", 65),
        (-32602, "invalid_params", 65), (-32603, "internal_error", 70), (-32001, "record_not_found", 66),
        (-32002, "record_exists", 73), (-32003, "revision_mismatch", 75), (-32004, "collection_not_found", 66),
        (-32005, "permission_denied", 77), (-32006, "unsupported", 65), (-32007, "limit_exceeded", 65),
        (-32008, "unavailable", 69), (-32009, "outcome_unknown", 75), (-32010, "invalid_query", 65),
        (-32011, "corrupt", 70), (-32012, "no_space", 75), (-32013, "invalid_configuration", 78),
    ])
    func saysWhatHappened(_ code: Int, _ name: String, _ status: Int32) async throws {
        let error = #"{"code":\#(code),"message":"so\nit is","data":{"name":"\#(name)","retryable":false}}"#
        let daemon = try ScriptedDaemon(answering: error)
        let run = try await CrudctlRun.of(["read", "c", "x", "--socket", daemon.path])
        #expect(run.status == status)
        #expect(run.output == "")
        #expect(run.errors == "crudctl: \(name): so\\nit is\n")
        _ = try await daemon.finish()
    }

    @Test func printsTheErrorObjectWhereJSONWasAskedFor() async throws {
        let error =
            #"{"code":-32003,"message":"changed","data":{"name":"revision_mismatch","retryable":false,"#
            + #""details":{"revision":"7"}}}"#
        let daemon = try ScriptedDaemon(answering: error)
        let run = try await CrudctlRun.of(["-o", "json", "delete", "c", "x", "--socket", daemon.path])
        #expect(run.status == 75)
        #expect(run.output == "")
        #expect(run.errors == error + "\n")
        _ = try await daemon.finish()
    }

    @Test func saysWhereNoDaemonIs() async throws {
        let run = try await CrudctlRun.of(["ping"], environment: ["CRUDD_SOCKET": "/nowhere/crudd.sock"])
        #expect(run.status == 69)
        #expect(
            run.errors == "crudctl: unavailable: no daemon answers at /nowhere/crudd.sock: No such file or directory\n")
    }

    @Test func givesUpAfterTheTimeout() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            _ = try peer.request()
            try peer.awaitClosing()
        }
        let run = try await CrudctlRun.of(["ping", "--timeout", "0.05", "--socket", daemon.path])
        #expect(run.status == 75)
        #expect(run.errors == "crudctl: unavailable: daemon.ping was not answered by its deadline\n")
        try await daemon.finish()
    }

    @Test(arguments: [
        ["frobnicate"], ["read"], ["read", "c"], ["read", "c", "x", "y"], ["ping", "--nonsense"],
        ["ping", "-o", "xml"], ["ping", "--timeout", "0"], ["ping", "--timeout", "soon"], ["ping", "--timeout", "-1"],
        ["create", "c", "x", "@/nowhere/item.json"],
    ])
    func refusesWrongUsage(_ arguments: [String]) async throws {
        let run = try await CrudctlRun.of(arguments, environment: ["CRUDD_SOCKET": "/nowhere"])
        #expect(run.status == 64)
        #expect(run.output == "")
        #expect(run.errors.hasPrefix("Error: "))
    }

    @Test func diesQuietlyOfABrokenPipe() async throws {
        let daemon = try ScriptedDaemon(answering: "[" + String(repeating: "0,", count: 200_000) + "0]")
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = [
            "-c", #"{ "$0" call x --socket "$1"; echo $? >&2; } | head -c 1"#, try CrudctlRun.executable.path,
            daemon.path,
        ]
        let (output, errors) = (Pipe(), Pipe())
        shell.standardOutput = output
        shell.standardError = errors
        _ = try await shell.status()
        #expect(String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) == "[")
        // 128 and SIGPIPE, and not a word.
        #expect(String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) == "141\n")
        _ = try await daemon.finish()
    }

    @Test func saysThatTheResultCannotBeWritten() async throws {
        let daemon = try ScriptedDaemon(answering: "{}")
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = [
            "-c", #""$0" ping --socket "$1" > /dev/full"#, try CrudctlRun.executable.path, daemon.path,
        ]
        let errors = Pipe()
        shell.standardError = errors
        #expect(try await shell.status() == 74)
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(text == "crudctl: cannot write the result: No space left on device\n")
        _ = try await daemon.finish()
    }
}
