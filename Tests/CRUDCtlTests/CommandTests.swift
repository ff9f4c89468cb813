import CRUDModel
import CRUDTestSupport
import ScriptedDaemon
import Testing

/// The requests and the output of each command.
@Suite struct CommandTests {
    @Test(arguments: [
        (
            ["create", "Clients Database", "x", #"{"a":1.0e+5}"#],
            #"record.create","params":{"collection":"Clients Database","id":"x","item":{"a":1.0e+5}}}"#
        ),
        (
            ["create", "c", "x", "1", "--ttl", "60"],
            #"record.create","params":{"collection":"c","id":"x","item":1,"ttl":60}}"#
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
        (
            ["upsert", "--ttl=0.25", "c", "x", "1"],
            #"record.upsert","params":{"collection":"c","id":"x","item":1,"ttl":0.25}}"#
        ),
        (
            ["update", "c", "x", "1", "--ttl", "9", "--if-revision", "r"],
            #"record.update","params":{"collection":"c","id":"x","item":1,"ifRevision":"r","ttl":9}}"#
        ),
        (
            ["patch", "c", "x", "{}", "--ttl", "86400"],
            #"record.patch","params":{"collection":"c","id":"x","patch":{},"ttl":86400}}"#
        ),
        (
            ["patch", "c", "x", "{}", "--no-ttl"],
            #"record.patch","params":{"collection":"c","id":"x","patch":{},"ttl":null}}"#
        ),
        (
            ["touch", "c", "x", "--ttl", "9", "--if-revision", "r"],
            #"record.touch","params":{"collection":"c","id":"x","ifRevision":"r","ttl":9}}"#
        ),
        (["touch", "c", "x", "--no-ttl"], #"record.touch","params":{"collection":"c","id":"x","ttl":null}}"#),
        (["upsert", "c", "--", "-x", "-1"], #"record.upsert","params":{"collection":"c","id":"-x","item":-1}}"#),
        (["upsert", "c", "x", "-1.5e3"], #"record.upsert","params":{"collection":"c","id":"x","item":-1.5e3}}"#),
        (
            ["upsert", "c", "x", "--ttl", "9", "-1"],
            #"record.upsert","params":{"collection":"c","id":"x","item":-1,"ttl":9}}"#
        ),
        (["read", "c", "-1"], #"record.read","params":{"collection":"c","id":"-1"}}"#),
        (["delete", "c", "\""], #"record.delete","params":{"collection":"c","id":"\""}}"#),
        (
            ["delete", "c", "x", "--if-revision", "r"],
            #"record.delete","params":{"collection":"c","id":"x","ifRevision":"r"}}"#
        ),
        (
            ["patch", "c", "x", #"{"a":null}"#, "--if-revision", "r", "--upsert"],
            #"record.patch","params":{"collection":"c","id":"x","patch":{"a":null},"ifRevision":"r","upsert":true}}"#
        ),
        (
            ["patch", "c", "x", "--increment", "visits=1", "--increment=a.b=-0.5", "--upsert"],
            #"record.patch","params":{"collection":"c","id":"x","increment":{"visits":1,"a.b":-0.5},"upsert":true}}"#
        ),
        (
            [
                "patch", "c", "x", "{}", "--minimum", "a=1e2", "--maximum", "b=2", "--append", "l=[1]", "--add",
                #"t="=""#,
                "--add", "u=1", "--add", "t=null", "--remove", #"r={"a": 1}"#,
            ],
            #"record.patch","params":{"collection":"c","id":"x","patch":{},"minimum":{"a":1e2},"maximum":{"b":2},"#
                + #""append":{"l":[[1]]},"add":{"t":["=",null],"u":[1]},"remove":{"r":[{"a": 1}]}}}"#
        ),
        (["query", "c"], #"record.query","params":{"collection":"c"}}"#),
        (
            [
                "query", "c", "--where", "age >= 18", "--prefix", "a/", "--sort", "name,-address.city", "--limit", "5",
                "--fields", "name", "--cursor", "k", "--explain",
            ],
            #"record.query","params":{"collection":"c","filter":{"op":">=","args":[{"property":"age"},18]},"#
                + #""prefix":"a/","sort":[{"property":"name","order":"asc"},"#
                + #"{"property":"address.city","order":"desc"}],"limit":5,"#
                + #""fields":["name"],"cursor":"k","explain":true}}"#
        ),
        (
            ["query", "c", "--sort", #"\-a\,b,-c\.d\\e"#, "--fields", #"x\,y,\-z,,\"#],
            #"record.query","params":{"collection":"c","sort":[{"property":"-a,b","order":"asc"},"#
                + #"{"property":"c\\.d\\\\e","order":"desc"}],"fields":["x,y","-z","\\"]}}"#
        ),
        (
            ["read", "c", "x", "--fields", #"a\,b"#],
            #"record.read","params":{"collection":"c","id":"x","fields":["a,b"]}}"#
        ),
        (
            ["query", "c", "--sort", "-age"],
            #"record.query","params":{"collection":"c","sort":[{"property":"age","order":"desc"}]}}"#
        ),
        (["count", "c", "--prefix", "a"], #"record.count","params":{"collection":"c","prefix":"a"}}"#),
        (
            ["delete-matching", "c", "--where", "gone IS NULL", "--yes"],
            #"record.deleteMatching","params":{"collection":"c","filter":{"op":"isNull","#
                + #""args":[{"property":"gone"}]}}}"#
        ),
        (
            ["delete-matching", "c", "--all", "--yes"],
            #"record.deleteMatching","params":{"collection":"c","all":true}}"#
        ),
        (["exists", "c", "x"], #"record.exists","params":{"collection":"c","id":"x"}}"#),
        (["describe", "a b"], #"collection.describe","params":{"collection":"a b"}}"#),
        (["reindex", "c"], #"collection.reindex","params":{"collection":"c"}}"#),
        (["drop", "c", "--yes"], #"collection.drop","params":{"collection":"c"}}"#),
        (["drop", "c", "--moved", "--yes"], #"collection.drop","params":{"collection":"c","moved":true}}"#),
        (["collections"], #"collection.list","params":{}}"#),
        (["backends"], #"backend.list","params":{}}"#),
        (["backup", "main", "/b"], #"backend.backup","params":{"backend":"main","directory":"/b"}}"#),
        (["plugins"], #"plugin.list","params":{}}"#),
        (["ping"], #"daemon.ping","params":{}}"#),
        (["status"], #"daemon.status","params":{}}"#),
        (["reload"], #"daemon.reload","params":{}}"#),
        (["reload", "--force"], #"daemon.reload","params":{"force":true}}"#),
        (["reload", "--dry-run", "--move"], #"daemon.reload","params":{"move":true,"dryRun":true}}"#),
        (["reload", "--force", "--move", "--detach"], #"daemon.reload","params":{"force":true,"move":true}}"#),
        (["config"], #"daemon.configuration","params":{}}"#),
        (["log-level", "debug"], #"daemon.logLevel","params":{"level":"debug"}}"#),
        (["call", "rpc.discover"], #"rpc.discover","params":{}}"#),
        (["call", "a.b", #"{"x": [1]}"#], #"a.b","params":{"x": [1]}}"#),
    ])
    func sends(_ arguments: [String], _ request: String) async throws {
        let result = #"{"the": "result", "exists": true}"#
        let daemon = try ScriptedDaemon(replying: result)
        let run = try CrudctlProgram.run(["--socket", daemon.path] + arguments)
        #expect(run.status == .exited(0))
        // A result that is printed to a pipe is the JSON text of the reply.
        #expect(run.output == result + "\n")
        #expect(run.errors == "")
        #expect(try await daemon.finish() == [#"{"jsonrpc":"2.0","id":1,"method":""# + request])
    }

    @Test func readsTheItemFromFileAndStandardInput() async throws {
        let daemon = try ScriptedDaemon(replying: "{}", "{}", "{}")
        let directory = try TemporaryDirectory()
        let item = String(repeating: #"["😀"], "#, count: 50_000)
        try Files.write(Array("[\n\(item)0]\n".utf8), to: directory.path + "/item")
        let environment = ["CRUDD_SOCKET": daemon.path]
        let file = try CrudctlProgram.run(
            ["create", "c", "x", "@" + directory.path + "/item"], environment: environment)
        #expect(file.status == .exited(0))
        for arguments in [["create", "c", "x"], ["create", "c", "x", "-"]] {
            let run = try CrudctlProgram.run(arguments, environment: environment, input: "{ }\n")
            #expect(run.status == .exited(0))
        }
        let requests = try await daemon.finish()
        #expect(requests[0].hasSuffix(#""item":["# + "\n\(item)0]\n}}"))
        #expect(requests[1].hasSuffix(#""item":{ }"# + "\n}}"))
        #expect(requests[1] == requests[2])
    }

    @Test func readsParamsAndOperationsFromFileAndStandardInput() async throws {
        let daemon = try ScriptedDaemon(replying: "{}", "{}", #"{"results":[{},{}]}"#, #"{"results":[]}"#)
        let environment = ["CRUDD_SOCKET": daemon.path]
        let directory = try TemporaryDirectory()
        let file = directory.path + "/params"
        try Files.write(#"{"a": 1}"#, to: file)
        let operations = #"{"op":"check"}"# + "\r\n \n" + #"{"op":"create", "item": 1.0}"#
        let lines: [(words: [String], input: String)] = [
            (["call", "x", "@\(file)"], ""), (["call", "x", "-"], "{ }"), (["batch", "-o", "ndjson"], operations),
            (["batch", file, "--atomic"], ""),
        ]
        for line in lines {
            let run = try CrudctlProgram.run(line.words, environment: environment, input: line.input)
            #expect(run.status == .exited(0), "\(run.errors)")
            if line.words[0] == "batch", line.words[1] == "-o" { #expect(run.output == "{}\n{}\n") }
        }
        let requests = try await daemon.finish()
        let expected = [
            #"{"a": 1}}"#, "{ }}", #"{"operations":[{"op":"check"}\#r,{"op":"create", "item": 1.0}]}}"#,
            #"{"operations":[{"a": 1}],"atomic":true}}"#,
        ]
        for (request, params) in zip(requests, expected) { #expect(request.hasSuffix(#""params":"# + params)) }
    }

    @Test func tellsTheFirstOperationThatFailed() async throws {
        let results = #"{"results":[{"result":{}},{"error":{"code":-32002,"message":"there it is","data":{}}}]}"#
        let daemon = try ScriptedDaemon(replying: results)
        let run = try CrudctlProgram.run(["batch", "--socket", daemon.path], input: "{}\n{}\n")
        #expect(run.status == .exited(73))
        #expect(run.output == results + "\n")
        #expect(run.errors == "crudctl: record_exists: operation 1: there it is\n")
        _ = try await daemon.finish()
        let details = #"{"name":"record_exists","retryable":false,"details":{"index":1}}"#
        let whole = try ScriptedDaemon(replying: #"{"code":-32002,"message":"there it is","data":\#(details)}"#)
        let atomic = try CrudctlProgram.run(["batch", "--atomic", "--socket", whole.path], input: "{}\n{}\n")
        #expect(atomic.status == .exited(73))
        #expect(atomic.errors == run.errors)
        _ = try await whole.finish()
        let invalid = try CrudctlProgram.run(["batch", "--socket", "/nowhere"], input: "{}\n{\n")
        #expect(invalid.status == .exited(65))
        #expect(invalid.errors.hasPrefix("crudctl: parse_error: operation 1 is not valid JSON: "))
    }

    @Test func tellsByItsStatusThatARecordIsNotThere() async throws {
        let daemon = try ScriptedDaemon(replying: #"{"exists":false}"#)
        let run = try CrudctlProgram.run(["exists", "c", "x", "--socket", daemon.path])
        #expect(run.status == .exited(66))
        #expect(run.output == "{\"exists\":false}\n")
        #expect(run.errors == "")
        _ = try await daemon.finish()
    }

    @Test(arguments: [
        ("{", "1, column 2"), ("", "1, column 1"), ("{}, \"id\":\"other\"", "1, column 3"),
        ("{\n  \"é\": 01}", "2, column 9"),
        ("1 2", "1, column 3"),
    ])
    func rejectsAnItemThatIsNotJSON(_ item: String, _ place: String) async throws {
        let run = try CrudctlProgram.run(["create", "c", "x", item], environment: ["CRUDD_SOCKET": "/nowhere"])
        #expect(run.status == .exited(65))
        #expect(run.errors.hasPrefix("crudctl: parse_error: the item is not valid JSON: "))
        #expect(run.errors.hasSuffix("at line \(place)\n"))
        #expect(run.output == "")
    }

    @Test func printsTheItemAlone() async throws {
        let daemon = try ScriptedDaemon(
            replying: #"{"id":"x","item": {"n": 1e400, "d":0.10} ,"revision":"1"}"#)
        let run = try CrudctlProgram.run(["read", "c", "x", "--raw", "--socket", daemon.path])
        #expect(run.output == #"{"n": 1e400, "d":0.10}"# + "\n")
        _ = try await daemon.finish()
    }

    @Test func globalOptionsStandAnywhere() async throws {
        let lines = [
            ["-o", "yaml", "ping"], ["ping", "-o", "yaml"], ["--output=yaml", "--timeout", "5", "ping", "--no-color"],
        ]
        for line in lines {
            let daemon = try ScriptedDaemon(replying: #"{"a":[1]}"#)
            let before = try CrudctlProgram.run(["--socket", daemon.path] + line)
            #expect(before.output == "a:\n  - 1\n")
            _ = try await daemon.finish()
            let other = try ScriptedDaemon(replying: #"{"a":[1]}"#)
            let after = try CrudctlProgram.run(line + ["--socket", other.path])
            #expect(after.output == "a:\n  - 1\n")
            _ = try await other.finish()
        }
    }

    @Test func tellsItsVersionAndHelp() throws {
        #expect(try CrudctlProgram.run(["--version"]).output == "crudctl \(CRUDVersion.current)\n")
        let help = try CrudctlProgram.run(["--help"])
        for command in [
            "create", "read", "update", "upsert", "delete", "collections", "backends", "plugins", "ping", "status",
            "reload", "call", "check-config", "check-plugin", "exists", "describe", "drop", "reindex", "batch",
            "dump", "load", "watch", "config", "log-level", "slow",
        ] {
            #expect(help.output.contains("  \(command) "))
            let own = try CrudctlProgram.run([command, "--help"])
            #expect(own.status == .exited(0))
            #expect(own.output.contains("USAGE: crudctl \(command)"))
        }
    }

    /// Copies of the program, installed with companions that print their arguments.
    @Test(arguments: [
        ("sbin", "crudd", ["check-config"], "--check"),
        ("sbin", "crudd", ["check-config", "my file.yaml"], "--check my file.yaml"),
        ("sbin", "crudd", ["check-config", "f", "--run-commands"], "--check f --run-commands"),
        ("lib/crudd", "crudd-plugin-check", ["check-plugin", "./my.so"], "./my.so"),
        (
            "lib/crudd", "crudd-plugin-check", ["check-plugin", "my.so", "--options", "{path: /x}"],
            "my.so --options {path: /x}"
        ),
    ])
    func checksThroughItsCompanions(folder: String, name: String, words: [String], told: String) throws {
        let directory = try TemporaryDirectory()
        for folder in ["bin", "sbin", "lib", "lib/crudd"] { try Files.makeDirectory("\(directory.path)/\(folder)") }
        let installed = "\(directory.path)/bin/crudctl"
        let script = "\(directory.path)/script"
        try Files.write(Array("#!/bin/sh\necho \"$@\"\nexit 78\n".utf8), to: script, mode: 0o755)
        // By cp(1): a file that this process had open for writing may still be open in a child that another test is
        // starting, and could not be executed.
        #expect(try Command.run("/bin/cp", [CrudctlProgram.path, installed]).status == .exited(0))
        #expect(try Command.run("/bin/cp", [script, "\(directory.path)/\(folder)/\(name)"]).status == .exited(0))
        let run = try Command.run(installed, words)
        #expect(run.status == .exited(78))
        #expect(run.output == "\(told)\n")
    }

    /// What failed, in JSON; lines that are not part of the report are the plugin's own.
    @Test func printsTheReportOfAPluginThatFails() throws {
        let directory = try TemporaryDirectory()
        let report = """
            memory
            version 1.0.0, no capabilities
            ok      function table
            a line of the plugin
            -       json: counting (not declared)
            FAILED  json: batches
                        a "difference"
                        another
            crudd-plugin-check: killed

            """
        try Files.write(report, to: "\(directory.path)/report")
        let script = "#!/bin/sh\ncat \(directory.path)/report; echo 'crudd-plugin-check: odd' >&2\nkill -KILL $$\n"
        try Files.write(Array(script.utf8), to: "\(directory.path)/script", mode: 0o755)
        #expect(try Command.run("/bin/cp", [CrudctlProgram.path, "\(directory.path)/crudctl"]).status == .exited(0))
        let host = "\(directory.path)/crudd-plugin-check"
        #expect(try Command.run("/bin/cp", ["\(directory.path)/script", host]).status == .exited(0))
        let run = try Command.run("\(directory.path)/crudctl", ["-o", "json", "check-plugin", "my.so"])
        #expect(run.status == .exited(70))
        let checks = [
            #"{"check":"function table","outcome":"passed"}"#,
            #"{"check":"json: counting","outcome":"skipped","reason":"not declared"}"#,
            #"{"check":"json: batches","outcome":"failed","failures":["a \"difference\"","another"]}"#,
        ]
        let header = #"{"plugin":"memory","version":"1.0.0","capabilities":[],"checks":["#
        #expect(run.output == header + checks.joined(separator: ",") + "]}\n")
        let error = try JSON(parsing: run.errors)
        #expect(error["message"]?.string == "odd; killed by signal 9")
        #expect(error["data"]?["name"]?.string == "internal_error")
        let lines = try Command.run("\(directory.path)/crudctl", ["-o", "ndjson", "check-plugin", "my.so"])
        #expect(lines.output == checks.joined(separator: "\n") + "\n")
        #expect(lines.errors == "crudctl: internal_error: odd; killed by signal 9\n")
    }
}
