import Foundation
import ScriptedDaemon
import Testing

/// What each command sends and prints.
@Suite struct CommandTests {
    @Test(arguments: [
        (
            ["create", "Clients Database", "x", #"{"a":1.0e+5}"#],
            #"record.create","params":{"collection":"Clients Database","id":"x","item":{"a":1.0e+5}}}"#
        ),
        (["read", "c", "x"], #"record.read","params":{"collection":"c","id":"x"}}"#),
        (
            ["read", "c", "x", "--fields", "a,b.c"],
            #"record.read","params":{"collection":"c","id":"x","fields":["a","b.c"]}}"#
        ),
        (["update", "c", "x", "null"], #"record.update","params":{"collection":"c","id":"x","item":null}}"#),
        (
            ["update", "c", "x", "1", "--if-revision", "r"],
            #"record.update","params":{"collection":"c","id":"x","item":1,"ifRevision":"r"}}"#
        ),
        (
            ["upsert", "--if-revision=r", "c", "x", "[]"],
            #"record.upsert","params":{"collection":"c","id":"x","item":[],"ifRevision":"r"}}"#
        ),
        (["upsert", "c", "--", "-x", "-1"], #"record.upsert","params":{"collection":"c","id":"-x","item":-1}}"#),
        (["delete", "c", "\""], #"record.delete","params":{"collection":"c","id":"\""}}"#),
        (
            ["delete", "c", "x", "--if-revision", "r"],
            #"record.delete","params":{"collection":"c","id":"x","ifRevision":"r"}}"#
        ),
        (["collections"], #"collection.list","params":{}}"#),
        (["backends"], #"backend.list","params":{}}"#),
        (["plugins"], #"plugin.list","params":{}}"#),
        (["ping"], #"daemon.ping","params":{}}"#),
        (["status"], #"daemon.status","params":{}}"#),
        (["reload"], #"daemon.reload","params":{}}"#),
        (["reload", "--force"], #"daemon.reload","params":{"force":true}}"#),
        (["call", "rpc.discover"], #"rpc.discover","params":{}}"#),
        (["call", "a.b", #"{"x": [1]}"#], #"a.b","params":{"x": [1]}}"#),
    ])
    func sends(_ arguments: [String], _ request: String) async throws {
        let daemon = try ScriptedDaemon(answering: #"{"the": "result"}"#)
        let run = try await CrudctlRun.of(["--socket", daemon.path] + arguments)
        #expect(run.status == 0)
        // Printed to a pipe, a result is JSON as it came.
        #expect(run.output == #"{"the": "result"}"# + "\n")
        #expect(run.errors == "")
        #expect(try await daemon.finish() == [#"{"jsonrpc":"2.0","id":1,"method":""# + request])
    }

    @Test func readsTheItemFromFileAndStandardInput() async throws {
        let daemon = try ScriptedDaemon(answering: "{}", "{}", "{}")
        let directory = try TemporaryDirectory()
        let item = String(repeating: #"["😀"], "#, count: 50_000)
        try Data("[\n\(item)0]\n".utf8).write(to: URL(fileURLWithPath: directory.path + "/item"))
        let environment = ["CRUDD_SOCKET": daemon.path]
        let file = try await CrudctlRun.of(
            ["create", "c", "x", "@" + directory.path + "/item"], environment: environment)
        #expect(file.status == 0)
        for arguments in [["create", "c", "x"], ["create", "c", "x", "-"]] {
            let run = try await CrudctlRun.of(arguments, standardInput: "{ }\n", environment: environment)
            #expect(run.status == 0)
        }
        let requests = try await daemon.finish()
        #expect(requests[0].hasSuffix(#""item":["# + "\n\(item)0]\n}}"))
        #expect(requests[1].hasSuffix(#""item":{ }"# + "\n}}"))
        #expect(requests[1] == requests[2])
    }

    @Test(arguments: [
        ("{", "1, column 2"), ("", "1, column 1"), ("{}, \"id\":\"other\"", "1, column 3"),
        ("{\n  \"é\": 01}", "2, column 9"),
        ("1 2", "1, column 3"),
    ])
    func refusesAnItemThatIsNoJSON(_ item: String, _ place: String) async throws {
        let run = try await CrudctlRun.of(["create", "c", "x", item], environment: ["CRUDD_SOCKET": "/nowhere"])
        #expect(run.status == 65)
        #expect(run.errors.hasPrefix("crudctl: parse_error: the item is not JSON: "))
        #expect(run.errors.hasSuffix("at line \(place)\n"))
        #expect(run.output == "")
    }

    @Test func printsTheItemAlone() async throws {
        let daemon = try ScriptedDaemon(
            answering: #"{"id":"x","item": {"n": 1e400, "d":0.10} ,"revision":"1"}"#)
        let run = try await CrudctlRun.of(["read", "c", "x", "--raw", "--socket", daemon.path])
        #expect(run.output == #"{"n": 1e400, "d":0.10}"# + "\n")
        _ = try await daemon.finish()
    }

    @Test func globalOptionsStandAnywhere() async throws {
        let lines = [
            ["-o", "yaml", "ping"], ["ping", "-o", "yaml"], ["--output=yaml", "--timeout", "5", "ping", "--no-color"],
        ]
        for line in lines {
            let daemon = try ScriptedDaemon(answering: #"{"a":[1]}"#)
            let before = try await CrudctlRun.of(["--socket", daemon.path] + line)
            #expect(before.output == "a:\n  - 1\n")
            _ = try await daemon.finish()
            let other = try ScriptedDaemon(answering: #"{"a":[1]}"#)
            let after = try await CrudctlRun.of(line + ["--socket", other.path])
            #expect(after.output == "a:\n  - 1\n")
            _ = try await other.finish()
        }
    }

    @Test func tellsItsVersionAndHelp() async throws {
        let version = try await CrudctlRun.of(["--version"])
        #expect(version.status == 0)
        #expect(version.output.hasPrefix("crudctl 0."))
        let help = try await CrudctlRun.of(["--help"])
        #expect(help.status == 0)
        for command in [
            "create", "read", "update", "upsert", "delete", "collections", "backends", "plugins", "ping", "status",
            "reload", "call", "check-config",
        ] {
            #expect(help.output.contains("  \(command) "))
            let own = try await CrudctlRun.of([command, "--help"])
            #expect(own.status == 0)
            #expect(own.output.contains("USAGE: crudctl \(command)"))
        }
        for shell in ["bash", "zsh", "fish"] {
            let script = try await CrudctlRun.of(["--generate-completion-script", shell])
            #expect(script.status == 0)
            #expect(script.output.contains("check-config"))
        }
    }

    @Test func checksAConfigurationThroughTheDaemonsProgram() async throws {
        // A copy of the program, installed beside a crudd that tells what it was asked.
        let directory = try TemporaryDirectory()
        for folder in ["bin", "sbin"] {
            try FileManager.default.createDirectory(
                atPath: directory.path + "/" + folder, withIntermediateDirectories: false)
        }
        let installed = URL(fileURLWithPath: directory.path + "/bin/crudctl")
        try FileManager.default.copyItem(at: CrudctlRun.executable, to: installed)
        let crudd = directory.path + "/sbin/crudd"
        try Data("#!/bin/sh\necho \"$@\"\nexit 78\n".utf8).write(to: URL(fileURLWithPath: crudd))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: crudd)
        let run = try await CrudctlRun.of(["check-config", "my file.yaml"], executable: installed)
        #expect(run.status == 78)
        #expect(run.output == "--check my file.yaml\n")
        let usual = try await CrudctlRun.of(["check-config"], executable: installed)
        #expect(usual.output == "--check\n")
    }
}
