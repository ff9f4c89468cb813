import CRUDJSON
import CRUDTestSupport
import ScriptedDaemon
import Testing

@testable import crudctl

@Suite struct OutputTests {
    static let list = #"""
        {"collections":[{"name":"clients","backend":"main","format":"json","indexes":["name","address.city"]},
        {"name":"Clients Database","backend":"files","format":"xml","indexes":[]}]}
        """#

    private func text(
        _ result: String, _ format: OutputFormat, width: Int? = nil, color: Bool = false, list: StaticString? = nil
    ) throws -> String {
        let terminal = Terminal(isTerminal: width != nil, width: width, hasColor: color)
        var text: [UInt8] = []
        let output = OutputBuffer { text += $0 }
        _ = try ResultPrinter(format: format, terminal: terminal).write(Array(result.utf8), list: list, to: output)
        try output.end()
        return String(decoding: text, as: UTF8.self)
    }

    @Test func printsOneElementPerLine() throws {
        #expect(
            try text(Self.list, .ndjson, list: "collections") == """
                {"name":"clients","backend":"main","format":"json","indexes":["name","address.city"]}
                {"name":"Clients Database","backend":"files","format":"xml","indexes":[]}

                """)
        #expect(try text("{ \"a\" : 0.10,\n\"b\\n\":1e400 }", .ndjson) == "{\"a\":0.10,\"b\\n\":1e400}\n")
    }

    @Test func printsRowsAndColumns() throws {
        #expect(
            try text(Self.list, .table, list: "collections") == """
                NAME              BACKEND  FORMAT  INDEXES
                clients           main     json    name, address.city
                Clients Database  files    xml     []

                """)
        #expect(try text(#"{"collections":[]}"#, .table, list: "collections") == "")
        #expect(try text("[1,\"b\"]", .table) == "1\nb\n")
        #expect(
            try text(#"{"c":[{"a":1},{"b":null}]}"#, .table, color: true, list: "c")
                == "\u{1B}[1mA  B\u{1B}[0m\n1  \n   null\n")
    }

    @Test(arguments: [10, 20, 30, 40, 48, 80])
    func fitsTheTerminal(_ width: Int) throws {
        let lines = try text(Self.list, .table, width: width, list: "collections").split(separator: "\n")
        #expect(lines.count == 3)
        // The minimum is four columns of six characters and the gaps between them; else there are fewer.
        #expect(lines.allSatisfy { String($0).displayWidth <= width })
        let widths = [30: "clien…  main", 40: "clients     main"]
        if let start = widths[width] { #expect(lines[1].hasPrefix(start)) }
    }

    /// As many rows as columns, if each record had its own: the table of all of them would be their product.
    @Test func aTableOfManyMembersHasALimit() throws {
        let elements = (0..<1000).map { row in
            "{" + (0..<50).map { #""m\#(row * 50 + $0)":\#($0)"# }.joined(separator: ",") + "}"
        }
        var pieces: [Int] = []
        let output = OutputBuffer { pieces.append($0.count) }
        let list = Array("[\(elements.joined(separator: ","))]".utf8)
        let slice = JSONSlice(start: 0, end: list.count, kind: .array)
        let table = TableWriter(terminal: Terminal(isTerminal: false, width: nil, hasColor: false), output: output)
        #expect(try table.write(slice, list.span), "columns are left out")
        try output.end()
        let rowBytes = 100 * 8
        #expect(pieces.reduce(0, +) <= 1001 * rowBytes)
        #expect(pieces.allSatisfy { $0 <= 64 << 10 + rowBytes })
    }

    /// Nor is a long text in memory twice, or divided within a character.
    @Test func aLongTextIsWrittenInPieces() throws {
        let string = "\"" + String(repeating: "😀é日", count: 100_000) + "\""
        var pieces: [[UInt8]] = []
        let output = OutputBuffer { pieces.append($0) }
        try output.append(Array(string.utf8).span)
        try output.end()
        #expect(pieces.joined().elementsEqual(string.utf8))
        #expect(pieces.allSatisfy { $0.count < 65 << 10 && String(validating: $0, as: UTF8.self) != nil })
    }

    @Test func aRecordOfManyMembersIsPrinted() async throws {
        let members = (0..<32_000).map { #""m\#($0)":\#($0)"# }.joined(separator: ",")
        let page = #"{"records":[{"id":"x","item":{\#(members)},"revision":"1"}]}"#
        for format in ["table", "yaml", "ndjson", "json"] {
            let daemon = try ScriptedDaemon(replying: page)
            let run = try CrudctlProgram.run(["query", "c", "-o", format, "--socket", daemon.path])
            #expect(run.status == .exited(0))
            let hint = "crudctl: there are more columns; choose with --fields, or use -o json\n"
            #expect(run.errors == (format == "table" ? hint : ""))
            #expect(run.output.uppercased().contains("M98") && run.output.contains("31999") == (format != "table"))
            _ = try await daemon.finish()
        }
    }

    @Test func measuresWideCharacters() throws {
        #expect("日本".displayWidth == 4)
        #expect("e\u{301}".displayWidth == 1)
        #expect("日本語".cut(to: 5) == "日本…")
        #expect("日本語".cut(to: 4) == "日…")
        #expect("日本語".cut(to: 6) == "日本語")
        #expect(try text(#"[{"a":"日本","b":1},{"a":"x","b":2}]"#, .table) == "A     B\n日本  1\nx     2\n")
    }

    @Test func printsAMemberToALine() throws {
        #expect(
            try text(#"{"id":"x","item":{"name":"Ann","n":[1,2]},"revision":"7"}"#, .table) == """
                id        x
                item      {"name":"Ann","n":[1,2]}
                revision  7

                """)
        #expect(
            try text(#"{"id":"x","item":{"name":"Ann","n":[1,[]]},"revision":"7"}"#, .table, width: 30) == """
                id        x
                item      {
                            "name": "Ann",
                            "n": [
                              1,
                              []
                            ]
                          }
                revision  7

                """)
        #expect(try text("{}", .table) == "ok\n")
        #expect(try text("1e400", .table) == "1e400\n")
    }

    /// Nothing of the state of the daemon is JSON in a table.
    @Test(
        arguments: [
            (nil, "collection x, from.backend y, n 1, 2"),
            (24, "collection x,\n       from.backend y,\n       n 1, 2"),
        ] as [(Int?, String)])
    func objectsAreLines(_ width: Int?, _ line: String) throws {
        let result =
            #"{"a":{"c":{"d":"e"},"f":1.50},"b":[{"collection":"x","from":{"backend":"y"},"n":[1,2]},"#
            + #"{"g":1}],"h":[],"i":{},"j":["k","\u001b"],"l":null}"#
        let terminal = Terminal(isTerminal: width != nil, width: width, hasColor: false)
        var text: [UInt8] = []
        let output = OutputBuffer { text += $0 }
        var printer = ResultPrinter(format: .table, terminal: terminal)
        printer.expandsObjects = true
        _ = try printer.write(Array(result.utf8), list: nil, to: output)
        try output.end()
        #expect(
            String(decoding: text, as: UTF8.self) == """
                a.c.d  e
                a.f    1.50
                b      \(line)
                       g 1
                h      none
                i      none
                j      k, \\u001b
                l      null

                """)
    }

    @Test func letsNothingSteerTheTerminal() throws {
        #expect(
            try text(#"{"a\u001b[2J":"\u001b]0;x\u0007\r\n\u009b\u202e"}"#, .table)
                == #"a\u001b[2J  \u001b]0;x\u0007\r\n\u009b\u202e"# + "\n")
    }

    /// Nothing might be a mistake; a pipe gets nothing.
    @Test(arguments: [
        (["query", "c"], #"{"records":[]}"#, "(0 records)\n"), (["sessions"], #"{"sessions":[]}"#, "(0 sessions)\n"),
        (["query", "c", "--all"], #"{"records":[]}"#, "(0 records)\n"),
        (["query", "c", "-o", "ndjson"], #"{"records":[]}"#, ""),
    ])
    func saysThatThereIsNothing(_ arguments: [String], _ reply: String, _ text: String) async throws {
        let daemon = try ScriptedDaemon(replying: reply, reply)
        #expect(try CrudctlProgram.run(arguments + ["--socket", daemon.path], columns: 80) == text)
        let format = arguments.contains("-o") ? [] : ["-o", "table"]
        #expect(try CrudctlProgram.run(arguments + format + ["--socket", daemon.path]).output == "")
        _ = try await daemon.finish()
    }

    /// Times are dates, durations have a unit, and no number is cut: what does not fit is left out.
    @Test(arguments: [UInt16(80), 200])
    func tablesOfTheDaemonFit(_ columns: UInt16) async throws {
        let session =
            #"{"id":17,"uid":1000,"user":"operator","client":"crudctl/1.0.0 with a long name","#
            + #""connectedAt":1795527507443,"inflight":12,"requests":123456789,"receivedBytes":123456789012,"#
            + #""sentBytes":2048,"heldBytes":0}"#
        let slow =
            #"{"at":1795527507443,"method":"record.query","collection":"a collection with a very long name","#
            + #""seconds":1.25,"waited":7.8e-05,"uid":0,"client":"nightly/2","#
            + #""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","#
            + #""filter":"zip = ? AND note LIKE ? AND \"a name\" BETWEEN ? AND ? AND other = ?","sort":"age DESC","#
            + #""returned":3,"plan":{"index":null,"sort":"host","scanned":200000}}"#
        let daemon = try ScriptedDaemon(
            replying: #"{"sessions":[\#(session)]}"#, #"{"entries":[\#(slow)]}"#,
            #"{"id":"x","item":1,"revision":"1","expiresAt":1795527507443}"#)
        func lines(_ words: String...) throws -> [String] {
            let words = words + ["--socket", daemon.path, "--no-color"]
            let screen = try CrudctlProgram.run(words, columns: columns, environment: ["TZ": "UTC"])
            return screen.split(separator: "\n").map(String.init)
        }
        let sessions = try lines("sessions")
        #expect(sessions.allSatisfy { $0.displayWidth <= Int(columns) })
        #expect(sessions[1].contains("2026-11-24 13:38:27") && sessions[1].contains("  123456789"), "\(sessions)")
        #expect(sessions[1].contains("115.0 GiB") == (columns == 200))
        #expect(sessions.contains("crudctl: there are more columns; use -o json to print them") == (columns == 80))
        let requests = try lines("slow")
        let row = "2026-11-24 13:38:27  1.3 s  78 µs   record.query  a collection with a very long name"
        let shape = #"zip = ? AND note LIKE ? AND "a name" BETWEEN ? AND ? AND other = ?; sort: age DESC"#
        let heading = "AT                   TOOK   WAITED  METHOD        COLLECTION"
        let ends = [
            "    3 of 200000 scanned records returned, no index, sorted by the daemon",
            "    user root (0), client nightly/2",
            "    trace parent 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ]
        let all = columns == 200
        #expect(
            requests == [heading]
                + (all
                    ? [row, "    \(shape)"]
                    : [row.cut(to: 80)] + [
                        "    \(shape.dropLast(9))", "    age DESC",
                    ]) + ends)
        #expect(try lines("read", "c", "x").contains("expiresAt  2026-11-24 13:38:27"))
        _ = try await daemon.finish()
    }

    @Test func showsATableOnATerminal() async throws {
        let daemon = try ScriptedDaemon(replying: Self.list)
        let lines = try CrudctlProgram.run(["collections", "--socket", daemon.path, "--no-color"], columns: 40)
            .split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("NAME "))
        #expect(lines.allSatisfy { $0.count <= 40 })
        _ = try await daemon.finish()
    }

    @Test(arguments: [(["NO_COLOR": "1"], false), (["NO_COLOR": ""], true), ([:], true)])
    func honoursNoColor(_ environment: [String: String], _ hasColor: Bool) async throws {
        let daemon = try ScriptedDaemon(replying: Self.list)
        let screen = try CrudctlProgram.run(
            ["collections", "--socket", daemon.path], columns: 80, environment: environment)
        #expect(screen.contains("\u{1B}[1m") == hasColor)
        _ = try await daemon.finish()
    }

    @Test func saysWhatItWaitsForOnATerminal() async throws {
        let daemon = try ScriptedDaemon(replying: #"{"revision":"1"}"#)
        let screen = try CrudctlProgram.run(
            ["create", "c", "x", "--socket", daemon.path], columns: 80, typing: "[1]\n\u{04}")
        #expect(screen.contains("crudctl: reading the item (JSON) from the terminal; end it with Ctrl-D\n"))
        #expect(try await daemon.finish()[0].hasSuffix("\"item\":[1]\n}}"))
    }
}
