import CRUDTestSupport
import Testing

/// `crudctl dump` and `load` with a real daemon.
@Suite(.daemon) struct DumpTests: CrudctlSuite {
    /// Ids and items that a decoder would change.
    private static let records = [
        ("a", "1e400"), ("b", "-0.10e+05"), ("c", "123456789012345678901234567890"),
        ("d", #""\u00e9\/é\ud83d\ude00\\""#), ("e", #"{"z":1,"a":{"y":[1.0,2.50 , null],"b":""},"z2":{}}"#),
        ("é", "true"), ("e\u{301}", "null"), ("../../etc/passwd", "[]"), (#"quote " back \ slash"#, "{ \"a\" :\t1 }"),
        ("😀", #""😀\t\u0000""#), (" ", "[[[[{}]]]]"),
    ]

    @Test func aDumpLoadsByteForByte() throws {
        let daemon = try Daemon.shared.connect()
        for (id, item) in Self.records { #expect(try daemon.create("dump odd", id, item).error == nil) }
        let dump = try run("dump", "dump odd")
        #expect(dump.status == .exited(0) && dump.errors.isEmpty, "\(dump.errors)")
        let lines = dump.output.split(separator: "\n")
        #expect(lines.first == #"{"crudd":"dump","version":1,"collection":"dump odd","format":"json"}"#)
        #expect(lines.last == #"{"count":11}"#)
        #expect(lines.count == Self.records.count + 2)

        let loaded = try run("load", "--into", "dump copy", input: dump.output)
        #expect(loaded.status == .exited(0), "\(loaded.errors)")
        #expect(loaded.output == #"{"loaded":[{"collection":"dump copy","records":11}]}"# + "\n")
        for (id, item) in Self.records { #expect(try daemon.item("dump copy", id) == item) }
        let copy = try run("dump", "dump copy").output.split(separator: "\n")
        #expect(copy.dropFirst() == lines.dropFirst())
    }

    /// Not some milliseconds later, as after a time from now on.
    @Test func aLoadedRecordExpiresAtTheSameInstant() throws {
        let daemon = try Daemon.shared.connect()
        for ttl in ["3600", "0.001", "3155760000", "77.777"] {
            let params = #"{"collection":"dump instants","id":"\#(ttl)","item":1,"ttl":\#(ttl)}"#
            #expect(try daemon.call("record.create", params).error == nil)
        }
        let dump = try run("dump", "dump instants")
        #expect(try run("load", "--into", "dump instants copy", input: dump.output).status == .exited(0))
        #expect(try run("load", "--into", "dump instants copy", "--upsert", input: dump.output).status == .exited(0))
        let copy = try run("dump", "dump instants copy").output.split(separator: "\n")
        #expect(copy.dropFirst() == dump.output.split(separator: "\n").dropFirst() && copy.count == 5)
    }

    @Test func aLineEndWithinAnItemBecomesASpace() throws {
        let daemon = try Daemon.shared.connect()
        #expect(try daemon.create("dump lines", "a", "{\n\"a\":\r\n[1,\n2]}").error == nil)
        let item = "{ \"a\":\r [1, 2]}"
        #expect(try run("dump", "dump lines").output.contains("\n{\"id\":\"a\",\"item\":\(item)}\n"))
        let copied = try shell(#""$0" dump "dump lines" | "$0" load --into "dump lines copy""#)
        #expect(copied.status == .exited(0), "\(copied.errors)")
        #expect(try daemon.item("dump lines copy", "a") == item)
    }

    @Test func dumpsSeveralCollectionsAndThoseThatMatch() throws {
        let daemon = try Daemon(Configuration())
        let connection = try daemon.connect()
        for name in ["one", "two", "empty"] { _ = try connection.create(name, "x", #"{"n":0}"#) }
        for number in 1...3 { _ = try connection.create("two", "\(number)", #"{"n":\#(number)}"#) }
        _ = try connection.delete("empty", "x")
        let path = daemon.socketPath
        let all = try shell(#""$0" dump --all"#, socket: path).output
        #expect(all.components("\"crudd\"") == 3)
        #expect(try shell(#""$0" dump empty one two"#, socket: path).output == all)
        let some = try shell(#""$0" dump two --where "n >= 2""#, socket: path).output
        #expect(some.split(separator: "\n").count == 4)
        #expect(some.hasSuffix("{\"count\":2}\n"))

        for name in ["one", "two"] { _ = try connection.call("collection.drop", #"{"collection":"\#(name)"}"#) }
        try Files.write(all, to: "\(daemon.installation.path)/dump")
        let loaded = try shell(#""$0" load "$1/dump""#, socket: path, daemon.installation.path)
        #expect(
            loaded.output == #"{"loaded":[{"collection":"empty","records":0},{"collection":"one","records":1},"#
                + #"{"collection":"two","records":4}]}"# + "\n", "\(loaded.errors)")
        #expect(try shell(#""$0" dump --all"#, socket: path).output == all)
        let merged = try shell(#""$0" load "$1/dump" --into three"#, socket: path, daemon.installation.path)
        #expect(merged.status == .exited(65))
        #expect(merged.errors.contains("line 3: --into needs a dump of one collection; nothing was written"))
        #expect(try connection.exists("three", "x") == false)
    }

    @Test func aTruncatedDumpLoadsNothing() throws {
        let header = #"{"crudd":"dump","version":1,"collection":"dump truncated","format":"json"}"# + "\n"
        let text = header + #"{"id":"a","item":1}"# + "\n" + #"{"id":"b","item":22}"# + "\n" + #"{"count":2}"# + "\n"
        let directory = try TemporaryDirectory()
        let ends = Array(stride(from: 0, to: text.utf8.count - 1, by: 23)) + [text.utf8.count - 2, header.utf8.count]
        for count in ends {
            try Files.write(Array(text.utf8.prefix(count)), to: "\(directory.path)/dump")
            let outcome = try run("load", "\(directory.path)/dump")
            #expect(outcome.status == .exited(65), "\(count) bytes")
            #expect(outcome.errors.hasPrefix("crudctl: parse_error: line "), "\(outcome.errors)")
            #expect(outcome.errors.hasSuffix("; nothing was written\n"), "\(outcome.errors)")
        }
        #expect(try Daemon.shared.connect().exists("dump truncated", "a") == false)
        // The last line end is no part of what a dump has to have.
        #expect(try run("load", input: String(text.dropLast())).status == .exited(0))
    }

    @Test(arguments: [
        ("{", "line 3: not valid JSON: the text ends too early at byte 2"), ("[]", "line 3: a record is"),
        (#"{"id":"","item":1}"#, "line 3: the id is empty"), (#"{"id":"a\n","item":1}"#, "line 3: the id contains"),
        (#"{"id":7,"item":1}"#, "line 3: the id is not a string"), (#"{"id":"b"}"#, "line 3: a record is"),
        (#"{"id":"b","item":1,"revision":"r"}"#, #"line 3: the member "revision" is unknown"#),
        (#"{"id":"b","id":"c","item":1}"#, #"line 3: the member "id" is unknown or repeated"#),
        (#"{"id":"b","item":1,"expiresAt":1.5}"#, "line 3: expiresAt is not an integer"),
        (#"{"count":2}"#, "line 3: 2 records are announced, but there are 1"), (#"{"count":-1}"#, "line 3: the last"),
        (#"{"crudd":"dump","version":2,"extra":1}"#, "line 3: "), ("\n\n{", "line 5: not valid JSON"),
        ("{\"count\":1}\n{\"id\":\"b\",\"item\":1}", "line 4: a collection begins with"),
        ("\u{0}", "line 3: not valid"),
    ])
    func namesTheMalformedLine(_ line: String, _ message: String) throws {
        let text = """
            {"crudd":"dump","version":1,"collection":"dump malformed","format":"json"}
            {"id":"a","item":1}
            \(line)
            {"count":1}

            """
        let outcome = try run("load", input: text)
        #expect(outcome.status == .exited(65))
        #expect(outcome.errors.hasPrefix("crudctl: parse_error: \(message)"), "\(outcome.errors)")
        #expect(outcome.errors.hasSuffix("; nothing was written\n"), "\(outcome.errors)")
        #expect(outcome.output.isEmpty)
        #expect(try Daemon.shared.connect().exists("dump malformed", "a") == false)
    }

    @Test func refusesBeforehandWhatTheDaemonWouldRefuse() throws {
        let header = #"{"crudd":"dump","version":1,"collection":"dump limits","format":"json"}"# + "\n"
        let first = #"{"id":"a","item":1}"# + "\n"
        let deep = String(repeating: "[", count: 129) + String(repeating: "]", count: 129)
        let long = "\"" + String(repeating: "x", count: 4 << 20) + "\""
        for (item, limit) in [(deep, "json_depth"), (long, "item_bytes")] {
            let text = header + first + #"{"id":"b","item":\#(item)}"# + "\n" + #"{"count":2}"# + "\n"
            let outcome = try run("load", input: text)
            #expect(outcome.status == .exited(65))
            #expect(outcome.errors.hasPrefix("crudctl: limit_exceeded: line 3: the item "), "\(outcome.errors)")
            #expect(outcome.errors.hasSuffix(" of \(limit); nothing was written\n"), "\(outcome.errors)")
        }
        #expect(try Daemon.shared.connect().exists("dump limits", "a") == false)
    }

    @Test func saysHowManyWereWrittenWhenARecordExists() throws {
        let daemon = try Daemon.shared.connect()
        _ = try daemon.create("dump there", "b", "0")
        let records = ["a", "b", "c"].map { #"{"id":"\#($0)","item":1}"# + "\n" }.joined()
        let header = #"{"crudd":"dump","version":1,"collection":"dump there","format":"json"}"#
        let text = "\(header)\n\(records){\"count\":3}\n"
        for arguments in [["load"], ["load", "--create"]] {
            let outcome = try run(arguments: arguments, input: text)
            #expect(outcome.status == .exited(73))
            #expect(outcome.errors.hasPrefix("crudctl: record_exists: line \(arguments.count == 1 ? 3 : 2): "))
            let written = arguments.count == 1 ? "2 of 3 records were written; " : "nothing was written"
            #expect(outcome.errors.contains("; \(written)"), "\(outcome.errors)")
        }
        #expect(try daemon.item("dump there", "b") == "0")
        for _ in 0..<2 { #expect(try run("load", "--upsert", input: text).status == .exited(0)) }
        #expect(try daemon.item("dump there", "b") == "1")
        #expect(try run("load", "--upsert", "--create", input: text).status == .exited(64))
    }

    @Test func leavesOutWhatHasExpired() throws {
        let text = """
            {"crudd":"dump","version":1,"collection":"dump expired","format":"json"}
            {"id":"a","item":1,"expiresAt":1000}
            {"id":"b","item":1}
            {"count":2}
            """
        let outcome = try run("load", input: text)
        #expect(outcome.status == .exited(0))
        #expect(outcome.output.contains(#""records":1"#))
        #expect(outcome.errors == "crudctl: 1 of the records have expired and were left out\n")
    }

    /// Whether or not they have been removed by then.
    @Test func recordsThatHaveExpiredAreNotInADump() throws {
        let daemon = try Daemon.shared.connect()
        let name = #""collection":"dump expiring""#
        #expect(try daemon.create("dump expiring", "stays", "1").result != nil)
        #expect(try daemon.call("record.create", #"{\#(name),"id":"later","item":2,"ttl":1000}"#).result != nil)
        let expiry = try #require(try daemon.read("dump expiring", "later").result?["expiresAt"]?.integer)
        let operations = (0..<1000).map { #"{"op":"create",\#(name),"id":"\#($0)","item":0,"ttl":0.2}"# }
        let list = operations.joined(separator: ",")
        #expect(try daemon.call("record.batch", #"{"operations":[\#(list)]}"#).result != nil)
        let deadline = Deadline()
        while try daemon.exists("dump expiring", "999") == true { try #require(!deadline.hasPassed) }
        let lines = try run("dump", "dump expiring").output.split(separator: "\n").dropFirst()
        #expect(
            lines == [
                #"{"id":"later","item":2,"expiresAt":\#(expiry)}"#, #"{"id":"stays","item":1}"#, #"{"count":2}"#,
            ])
    }

    @Test func wantsToKnowWhatToDump() throws {
        for arguments in [["dump"], ["dump", "a", "--all"]] {
            #expect(try run(arguments: arguments).status == .exited(64))
        }
        #expect(try run("dump", "a", "--where", "n >").status == .exited(65))
        #expect(try run("load", "/nowhere/dump").status == .exited(64))
    }

    /// 16 MB each way, in a process that has less than that beyond what it has for no records.
    @Test func needsLittleMemory() throws {
        let filler = String(repeating: "x", count: 2000)
        var text = #"{"crudd":"dump","version":1,"collection":"dump large","format":"json"}"# + "\n"
        for number in 0..<8_000 { text += #"{"id":"\#(100_000 + number)","item":"\#(filler)"}"# + "\n" }
        text += #"{"count":8000}"# + "\n"
        let directory = try TemporaryDirectory()
        try Files.write(text, to: "\(directory.path)/dump")
        let measured =
            #"python3 -c 'import resource, subprocess, sys; status = subprocess.call(sys.argv[1:]); "#
            + #"print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(status)' "$0""#
        var peaks: [Int] = []
        for command in ["dump 'no records'", #"load "$1/dump""#, #"dump "dump large" > "$1/copy""#] {
            let outcome = try shell("\(measured) \(command)", directory.path)
            #expect(outcome.status == .exited(0), "\(outcome.errors)")
            peaks.append(try #require(outcome.errorLines.last.flatMap { Int($0) }))
        }
        #expect(peaks.allSatisfy { $0 - peaks[0] < 12 << 10 }, "\(peaks) KiB")
        #expect(try Files.read("\(directory.path)/copy") == Array(text.utf8))
    }

    /// Runs a line of shell in which `$0` is crudctl.
    private func shell(_ line: String, socket: String? = nil, _ arguments: String...) throws -> Command.Outcome {
        let socket = try socket ?? Daemon.shared.socketPath
        return try Command.run(
            "sh", ["-c", line, BuildProducts.path(of: "crudctl")] + arguments, environment: ["CRUDD_SOCKET": socket])
    }
}

extension String {
    /// How often `text` occurs.
    fileprivate func components(_ text: String) -> Int { ranges(of: text).count }
}
