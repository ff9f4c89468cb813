import CRUDTestSupport
import ScriptedDaemon
import Testing

/// The requests and the output of `crudctl query`, `count` and `delete-matching`.
@Suite struct QueryCommandTests {
    private static let pages = [
        #"{"records":[{"id":"a","item":{"n":1},"revision":"r"},{"id":"b","item":2,"revision":"s"}],"cursor":"k"}"#,
        #"{"records":[],"cursor":"l"}"#,
        #"{"records":[{"id":"c","item":{"id":"x","n":"3"},"revision":"t"}]}"#,
    ]

    /// A daemon that sends page after page to one connection, and returns the cursors of the requests.
    private static func pagingDaemon(_ pages: [String] = pages) throws -> ScriptedDaemon<[String]> {
        try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try pages.map { page in
                let request = try peer.request()
                try peer.reply(to: request, page)
                return request.text
            }
            try peer.drain()
            return requests
        }
    }

    @Test(arguments: [
        (
            "json",
            #"{"records":[{"id":"a","item":{"n":1},"revision":"r"},{"id":"b","item":2,"revision":"s"},"#
                + #"{"id":"c","item":{"id":"x","n":"3"},"revision":"t"}]}"# + "\n"
        ),
        (
            "ndjson",
            #"{"id":"a","item":{"n":1},"revision":"r"}"# + "\n" + #"{"id":"b","item":2,"revision":"s"}"# + "\n"
                + #"{"id":"c","item":{"id":"x","n":"3"},"revision":"t"}"# + "\n"
        ),
        ("table", "ID  N  ITEM\na   1  \nb      2\nID  ITEM.ID  N\nc   x        3\n"),
    ])
    func readsEveryPageOverOneConnection(_ format: String, _ expected: String) async throws {
        let daemon = try Self.pagingDaemon()
        let run = try CrudctlProgram.run(["--socket", daemon.path, "query", "c", "--all", "-o", format])
        #expect(run.status == .exited(0))
        #expect(run.output == expected)
        let requests = try await daemon.finish()
        #expect(requests.map { $0.contains(#""cursor""#) } == [false, true, true])
        #expect(requests[1].contains(#""cursor":"k""#) && requests[2].contains(#""cursor":"l""#))
    }

    /// A page may end before its first record, and the walk continues.
    @Test func theFirstPageMayBeEmpty() async throws {
        let pages = [#"{"records":[],"cursor":"k"}"#, #"{"records":[1],"cursor":"l"}"#, #"{"records":[2,3]}"#]
        let daemon = try Self.pagingDaemon(pages)
        let run = try CrudctlProgram.run(["--socket", daemon.path, "query", "c", "--all"])
        #expect(run.output == #"{"records":[1,2,3]}"# + "\n")
        _ = try await daemon.finish()
    }

    /// In the document, where that has a place for them, else on standard error.
    @Test(arguments: [
        ("json", #"{"records":[{"id":"a","item":1}],"corrupt":["b","c\n","d"]}"# + "\n"),
        ("ndjson", #"{"id":"a","item":1}"# + "\n"), ("table", "ID  ITEM\na   1\n"),
        ("yaml", "- id: a\n  item: 1\n"),
    ])
    func namesCorruptRecordsOfEveryPage(_ format: String, _ expected: String) async throws {
        let daemon = try Self.pagingDaemon([
            #"{"records":[{"id":"a","item":1}],"corrupt":["b"],"cursor":"k"}"#,
            #"{"records":[],"corrupt":["b","c\n","d"]}"#,
        ])
        let run = try CrudctlProgram.run(["--socket", daemon.path, "query", "c", "--all", "-o", format])
        #expect(run.status == .exited(0))
        #expect(run.output == expected)
        let lines = [#""b""#, #""c\n""#, #""d""#].map { id in
            "crudctl: corrupt: the record \(id) cannot be decoded and is left out"
        }
        #expect(run.errorLines == (format == "json" ? [] : lines))
        _ = try await daemon.finish()
    }

    @Test(arguments: [
        ("query", "json", true), ("query", "yaml", true), ("query", "ndjson", false), ("query", "table", false),
        ("count", "json", true), ("count", "yaml", true), ("count", "ndjson", true), ("count", "table", false),
    ])
    func namesCorruptRecordsOnce(_ command: String, _ format: String, _ isInTheResult: Bool) async throws {
        let daemon = try ScriptedDaemon(replying: #"{"records":[],"count":2,"corrupt":["odd"]}"#)
        let run = try CrudctlProgram.run(["--socket", daemon.path, command, "c", "-o", format])
        #expect(run.status == .exited(0))
        #expect(run.output.contains("odd") == isInTheResult)
        #expect(run.errors.contains(#"crudctl: corrupt: the record "odd" "#) == !isInTheResult)
        _ = try await daemon.finish()
    }

    /// On standard error, unless the document has the cursor.
    @Test(arguments: [("table", true), ("ndjson", true), ("json", false), ("yaml", false)])
    func saysThatThereIsMore(_ format: String, _ isOnStandardError: Bool) async throws {
        let daemon = try ScriptedDaemon(replying: Self.pages[0])
        let run = try CrudctlProgram.run(["--socket", daemon.path, "query", "c", "-o", format])
        if format == "table" { #expect(run.output == "ID  N  ITEM\na   1  \nb      2\n") }
        #expect(run.output.contains("cursor") == !isOnStandardError)
        #expect(run.errors == (isOnStandardError ? "crudctl: there are more records; use --all to print them\n" : ""))
        _ = try await daemon.finish()
    }

    @Test(arguments: ["", "-", "a,", "-a,,b", ",a"])
    func aSortWithoutANameIsNotSent(_ sort: String) throws {
        let run = try CrudctlProgram.run(["query", "c", "--sort", sort], environment: ["CRUDD_SOCKET": "/nowhere"])
        #expect(run.status == .exited(64))
        #expect(run.errors.hasPrefix("crudctl: invalid_params: --sort has an empty name"), "\(run.errors)")
    }

    /// Nothing says which properties records have, so that a mistyped one is accepted; here only `n` is one.
    @Test(arguments: [
        (["--sort", "n"], []), (["--sort", "-m,n"], ["m"]), (["--sort", #"a\.b,c\,d"#], [#"a\.b"#, "c,d"]),
        (["--fields", "n,n.m"], ["n.m"]), (["--fields", "o", "--sort", "m"], ["o"]), (["--fields", ","], []),
        (["--sort", "null"], ["null"]), ([], []),
    ])
    func namesPropertiesThatNoRecordHas(_ options: [String], _ names: [String]) async throws {
        let pages = [
            #"{"records":[{"id":"a","item":2,"revision":"r"}],"cursor":"k"}"#,
            #"{"records":[{"id":"b","item":{"n":1,"null":null},"revision":"s"}]}"#,
        ]
        let daemon = try Self.pagingDaemon(pages)
        let run = try CrudctlProgram.run(["--socket", daemon.path, "query", "c", "--all"] + options)
        #expect(run.status == .exited(0))
        #expect(run.errorLines == names.map { "note: none of these records has a value of \"\($0)\"" })
        _ = try await daemon.finish()
    }

    @Test func anEmptyResultLacksNoProperties() async throws {
        let daemon = try ScriptedDaemon(replying: #"{"records":[]}"#)
        let run = try CrudctlProgram.run(["--socket", daemon.path, "query", "c", "--sort", "m"])
        #expect(run.status == .exited(0) && run.errors.isEmpty, "\(run.errors)")
    }

    @Test func aCountIsANumberAloneInATable() async throws {
        let daemon = try ScriptedDaemon(replying: #"{"count":42}"#, #"{"count":42}"#)
        #expect(try CrudctlProgram.run(["--socket", daemon.path, "count", "c", "-o", "table"]).output == "42\n")
        #expect(try CrudctlProgram.run(["--socket", daemon.path, "count", "c"]).output == #"{"count":42}"# + "\n")
        _ = try await daemon.finish()
    }

    @Test(arguments: ["age >=", "age >= 18 AND", "age = NULL", "'a' = age", "age"])
    func aConditionThatIsNoCQL2IsNotSent(_ condition: String) throws {
        for command in [["query", "c"], ["count", "c"], ["delete-matching", "c", "--yes"]] {
            let run = try CrudctlProgram.run(
                command + ["--where", condition], environment: ["CRUDD_SOCKET": "/nowhere"])
            #expect(run.status == .exited(65))
            #expect(run.errors.hasPrefix("crudctl: invalid_query: "))
            #expect(run.errors.contains("column"))
        }
    }

    /// Nobody is told to give `--yes` before it is clear what is to be deleted.
    @Test(arguments: [
        (["--all"], "--yes"), (["--where", "a = 1"], "--yes"), ([], "--where"), (["--yes"], "--where"),
        (["--all", "--where", "a = 1"], "--where"), (["--all", "--where", "a = 1", "--yes"], "--where"),
    ])
    func deletingHasToBeMeant(_ arguments: [String], _ missing: String) throws {
        let run = try CrudctlProgram.run(
            ["delete-matching", "c"] + arguments, environment: ["CRUDD_SOCKET": "/nowhere"])
        #expect(run.status == .exited(64))
        #expect(["--yes", "--where"].filter(run.errors.contains) == [missing], "\(run.errors)")
    }

    @Test(arguments: [("y\n", true), ("yes\n", true), ("n\n", false), ("\n", false)])
    func asksForConfirmationOnATerminal(_ reply: String, _ isConfirmed: Bool) async throws {
        let replies = [#"{"count":3}"#] + (isConfirmed ? [#"{"deleted":3}"#] : [])
        let daemon = try ScriptedDaemon { listener in
            try replies.map { reply in
                let peer = try listener.accept()
                let request = try peer.request()
                try peer.reply(to: request, reply)
                try peer.drain()
                return request.text
            }
        }
        let screen = try CrudctlProgram.run(
            ["--socket", daemon.path, "delete-matching", "c", "--all"], columns: 80, typing: reply,
            environment: ["NO_COLOR": "1"])
        #expect(screen.contains("Delete 3 records of c? [y/N]"))
        #expect(screen.contains(isConfirmed ? "deleted  3" : "nothing has been deleted"))
        #expect(try await daemon.finish().count == replies.count)
    }
}
