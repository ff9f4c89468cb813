import CRUDTestSupport
import Testing

/// `daemon.slowLog` and `log.slow`.
@Suite struct SlowRequestTests {
    private static func daemon(_ slow: String) throws -> Daemon {
        try Daemon(
            on: try Installation(text: Configuration(loops: 2).text + "log: {slow: \(slow)}\n"))
    }

    private static func entries(_ daemon: Daemon, limit: Int? = nil) throws -> [JSON] {
        let params = limit.map { #"{"limit":\#($0)}"# } ?? "{}"
        return try #require(try daemon.connect().call("daemon.slowLog", params).result?["entries"]?.elements)
    }

    /// With a limit of a microsecond every request is slow.
    @Test func slowRequestsAreKeptAndLogged() throws {
        let daemon = try Self.daemon("1us")
        let connection = try daemon.connect()
        #expect(try connection.upsert("slow", "secret id", #""secret item""#).result != nil)
        #expect(try connection.call("record.read", Connection.params("slow", "secret id")).result != nil)
        #expect(try connection.call("record.read", Connection.params("slow", "secret id")).result != nil)
        #expect(try connection.call("session.hello", #"{"client":"tests \u001b"}"#).result != nil)
        let query = #"{"collection":"slow","sort":[{"property":"a"},{"property":"b","order":"desc"}]}"#
        #expect(try connection.call("record.query", query).result != nil)
        let operations =
            #"{"operations":[{"op":"delete","collection":"a","id":"1"},{"op":"delete","collection":"b","id":"1"}]}"#
        #expect(try connection.call("record.batch", operations).result != nil)
        let entries = try Self.entries(daemon)
        #expect(
            entries.compactMap { $0["method"]?.string } == [
                "record.batch", "record.query", "session.hello", "record.read", "record.read", "record.upsert",
            ])
        for entry in entries {
            let names = entry.members?.map(\.name) ?? []
            #expect(names.prefix(7) == ["at", "method", "collection", "seconds", "waited", "uid", "client"])
            #expect(entry["at"]?.integer ?? 0 > 1_700_000_000_000)
            #expect(entry["uid"]?.integer == Int(Peer.own.user))
            let (seconds, waited) = (Double(entry["seconds"]?.text ?? ""), Double(entry["waited"]?.text ?? ""))
            #expect(seconds ?? -1 > 0 && waited ?? -1 >= 0 && waited ?? 1 <= seconds ?? 0)
        }
        #expect(entries[0]["collection"]?.text == "null", "it is about two")
        #expect(entries[1]["collection"]?.string == "slow")
        #expect(entries[1]["plan"]?.text == #"{"index":null,"sort":"host","scanned":1}"#)
        #expect(entries[1]["sort"]?.string == "a, b DESC" && entries[1]["returned"]?.integer == 1)
        #expect(entries[1]["client"]?.string == "tests \u{1B}" && entries[1]["filter"] == nil)
        #expect(entries[3]["plan"] == nil && entries[3]["client"]?.string == "" && entries[3]["returned"] == nil)
        #expect(try Self.entries(daemon, limit: 1).map { $0["method"]?.string } == ["daemon.slowLog"])
        let line = daemon.log.split(separator: "\n").first { $0.contains("record.query on collection \"slow\" took") }
        #expect(
            line?.hasPrefix(
                "<5>session 1 of uid \(Peer.own.user), client \"tests \\u{1B}\": record.query on collection \"slow\" ")
                == true)
        let end = "; sort: a, b DESC; 1 of 1 scanned records returned, no index, sorted by the daemon"
        #expect(line?.contains("s; sort: ") == true && line?.hasSuffix(end) == true, "\(line ?? "")")
        #expect(!daemon.log.contains("secret"))
    }

    /// Of requests that are replied to at once, by a backend's thread and as an element of an array, and of none other.
    @Test func theTraceOfARequestIsKeptAndLogged() throws {
        let daemon = try Self.daemon("1us")
        let connection = try daemon.connect()
        let traces = (1...3).map { "00-\(String(repeating: "\($0)", count: 32))-00f067aa0ba902b7-0\($0)" }
        func request(_ method: String, _ params: String, _ traceParent: String) -> String {
            #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","traceparent":"\#(traceParent)","params":\#(params)}"#
        }
        try connection.sendFrame(request("record.upsert", #"{"collection":"c","id":"a","item":1}"#, traces[0]))
        #expect(try connection.receive().result != nil)
        try connection.sendFrame(
            "[\(request("record.read", Connection.params("c", "a"), traces[1]))"
                + ",\(request("record.count", #"{"collection":"c"}"#, "00-\(traces[1])"))]")
        #expect(try connection.receiveBatch().allSatisfy { $0.result != nil })
        try connection.sendFrame(request("daemon.ping", "{}", traces[2]))
        #expect(try connection.receive().result != nil)
        #expect(try connection.call("daemon.ping").result != nil)
        let entries = try Self.entries(daemon)
        func trace(_ method: String) -> [String?] {
            entries.filter { $0["method"]?.string == method }.map { $0["traceparent"]?.string }
        }
        #expect(trace("record.upsert") == [traces[0]] && trace("record.read") == [traces[1]])
        #expect(trace("record.count") == [nil] && trace("daemon.ping") == [nil, traces[2]])
        for (method, digit) in [("record.upsert on collection \"c\"", "1"), ("daemon.ping", "3")] {
            let line = daemon.log.split(separator: "\n").first { $0.contains(": \(method) took ") }
            #expect(line?.contains(", trace \(String(repeating: digit, count: 32))") == true, "\(line ?? "")")
        }
    }

    /// Never a value, and of the names no more than there is room for.
    @Test func searchesHaveAShape() throws {
        let configuration = Configuration(collections: "c: {backend: main, changes: true}")
        let daemon = try Daemon(on: try Installation(text: configuration.text + "log: {slow: 1us}\n"))
        let connection = try daemon.connect()
        for id in ["a", "b"] { #expect(try connection.upsert("c", id, #"{"zip":"secret"}"#).result != nil) }
        let like = #"{"op":"like","args":[{"property":"no\nte"},"%secret%"]}"#
        let among = #"{"op":"in","args":[{"property":"zip"},["secret","b"]]}"#
        let filters = [
            #"{"op":"and","args":[{"op":"=","args":[{"property":"zip"},"secret"]},\#(like)]}"#,
            #"{"op":"or","args":[\#(among),{"op":"not","args":[{"op":">","args":[{"property":"n"},4711]}]}]}"#,
            #"{"op":"isNull","args":[{"property":"\#(String(repeating: "x", count: 100_000))"}]}"#,
            #"{"op":"and","args":[\#(Array(repeating: among, count: 400).joined(separator: ","))]}"#,
        ]
        for filter in filters {
            for method in ["record.query", "record.count"] {
                let result = try connection.call(method, #"{"collection":"c","filter":\#(filter)}"#).result
                #expect(result != nil, "\(method)")
            }
        }
        let deletion = #"{"collection":"c","filter":\#(among)}"#
        #expect(try connection.call("record.deleteMatching", deletion).result?["deleted"]?.integer == 2)
        let changes = #"{"collection":"c","filter":\#(among),"after":"start"}"#
        #expect(try connection.call("collection.changes", changes).error == nil)
        let entries = try Self.entries(daemon)
        let first = #"zip = ? AND "no\nte" LIKE ?"#
        let shapes = entries.compactMap { $0["filter"]?.string }
        #expect(shapes.prefix(2) == ["zip IN (?)", "zip IN (?)"])
        #expect(shapes.suffix(4) == ["zip IN (?) OR NOT (n > ?)", "zip IN (?) OR NOT (n > ?)", first, first])
        #expect(shapes.allSatisfy { $0.utf8.count < 1100 } && shapes.count == 10)
        #expect(shapes[2].hasSuffix("…") && shapes[4].hasPrefix(#""xxx"#) && shapes[4].hasSuffix(#"x"… IS NULL"#))
        #expect(entries[1]["method"]?.string == "record.deleteMatching" && entries[1]["returned"]?.integer == 2)
        let count = entries[6]
        #expect(count["plan"]?.text == #"{"index":null,"sort":"id","scanned":2}"# && count["returned"]?.integer == 2)
        #expect(!daemon.log.contains("secret") && !daemon.log.contains("4711"))
        #expect(daemon.log.contains(#"; filter: zip IN (?); 2 records"#))
    }

    /// A query that a child has executed next to its plugin; with an index too.
    @Test func theQueriesOfAChildHaveAPlan() throws {
        let configuration = Configuration(
            backends: "main: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/main.sqlite}}",
            collections: "c: {backend: main, indexes: [n]}")
        let daemon = try Daemon(on: try Installation(text: configuration.text + "log: {slow: 1us}\n"))
        let connection = try daemon.connect()
        for number in 0..<3 { #expect(try connection.upsert("c", "\(number)", #"{"n":\#(number)}"#).result != nil) }
        let filters = [#"{"op":"=","args":[{"property":"n"},1]}"#, #"{"op":"like","args":[{"property":"x"},"%1"]}"#]
        for filter in filters {
            for method in ["record.query", "record.count"] {
                #expect(try connection.call(method, #"{"collection":"c","filter":\#(filter)}"#).result != nil)
            }
        }
        let entries = try Self.entries(daemon).prefix(4)
        let plans = [#"{"index":null,"sort":"id","scanned":3}"#, #"{"index":"n","sort":"id","scanned":1}"#]
        #expect(entries.map { $0["plan"]?.text } == [plans[0], plans[0], plans[1], plans[1]])
        #expect(entries.map { $0["returned"]?.integer } == [0, 0, 1, 1])
    }

    @Test func theLatest128AreKept() throws {
        let daemon = try Self.daemon("1us")
        let connection = try daemon.connect()
        for number in 0..<150 {
            #expect(try connection.call("record.exists", Connection.params("c\(number)", "a")).result != nil)
        }
        let entries = try Self.entries(daemon)
        #expect(entries.count == 128)
        #expect(entries.first?["collection"]?.string == "c149" && entries.last?["collection"]?.string == "c22")
        let lines = daemon.log.split(separator: "\n").count { $0.contains(" took ") }
        #expect((20..<128).contains(lines), "the log is not flooded")
    }

    @Test func nothingIsSlowWithoutALimit() throws {
        let daemon = try Self.daemon("0ms")
        let connection = try daemon.connect()
        #expect(try connection.upsert("c", "a", "1").result != nil)
        #expect(try Self.entries(daemon).isEmpty)
        try daemon.installation.configure(text: Configuration(loops: 2).text + "log: {slow: 1us}\n")
        #expect(try connection.call("daemon.reload").result?["changes"]?.text == #"["log.slow: from 0s to 1us"]"#)
        #expect(try connection.upsert("c", "a", "1").result != nil)
        #expect(try Self.entries(daemon).contains { $0["method"]?.string == "record.upsert" })
    }

    @Test(arguments: ["0", "-1", "\"1\""])
    func aLimitIsPositive(limit: String) throws {
        let connection = try Self.daemon("1s").connect()
        let error = try connection.call("daemon.slowLog", #"{"limit":\#(limit)}"#).error
        #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "limit")
    }
}
