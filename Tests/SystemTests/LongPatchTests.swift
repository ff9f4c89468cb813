import CRUDTestSupport
import Testing

/// Patches that take long to apply.
@Suite(.daemon(Backends.configuration)) struct LongPatchTests {
    /// A patch of so many members.
    private static func patch(members: Int, value: String = "1") -> String {
        "{" + (0..<members).map { #""member \#($0)":\#(value)"# }.joined(separator: ",") + "}"
    }

    private static let long = patch(members: 5000)

    /// Others write while patches are applied: more often than a patch is done. Before, all patches that had come were
    /// applied first.
    @Test func othersWriteMeanwhile() throws {
        let daemon = try Daemon()
        let witness = try daemon.connect()
        let item = Self.patch(members: 30_000)
        let patching = try (0..<20).map { number in
            let connection = try daemon.connect()
            #expect(try connection.create("c", "\(number)", item).result != nil)
            return connection
        }
        let writes = try witness.mostWrites(of: "small", in: "c", over: patching) { number in
            let params = Connection.params("c", "\(number)", more: ["patch": Self.long])
            return Connection.request("record.patch", params, id: "1")
        }
        #expect(writes > patching.count)
        #expect(try daemon.stop() == .exited(0))
    }

    /// What one connection sends takes effect in order, long patches, short ones and reads of several records mixed.
    @Test(arguments: Backends.collections)
    func keepsItsPlace(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/long order"
        var requests: [(String, String)] = []
        func add(_ method: String, _ id: String, _ more: [String: String] = [:], item: String? = nil) {
            requests.append((method, Connection.params(collection, id, item: item, more: more)))
        }
        for number in 0..<5 {
            add("record.upsert", "a", item: #"{"n":\#(number)}"#)
            add("record.patch", "a", ["patch": Self.long])
            add("record.patch", "a", ["patch": #"{"n":{"is":\#(number)}}"#])
            add("record.read", "a", ["fields": #"["n","member 4999"]"#])
            add("record.patch", "a", ["patch": Self.long.replacing(":1", with: ":null")])
            add("record.read", "a")
            add("record.delete", "a")
            add("record.patch", "a", ["patch": Self.long])
            add("record.patch", "b", ["patch": Self.long, "upsert": "true"])
        }
        let replies = try connection.pipeline(requests)
        for number in 0..<5 {
            let replies = replies[(number * 9)...].prefix(9).map { $0 }
            #expect(replies[1].result?["item"]?["member 4999"]?.text == "1")
            #expect(replies[2].result?["item"]?["member 0"]?.text == "1")
            #expect(replies[3].result?["item"]?.text == #"{"n":{"is":\#(number)},"member 4999":1}"#)
            #expect(replies[5].result?["item"]?.text == #"{"n":{"is":\#(number)}}"#)
            #expect(replies[5].result?["revision"]?.text == replies[4].result?["revision"]?.text)
            #expect(replies[7].error?.name == "record_not_found")
            #expect(replies[8].result?["item"]?["member 1"]?.text == "1")
        }
    }

    /// In a batch they see what is before them, and what is behind them sees them.
    @Test(arguments: Backends.collections, [false, true])
    func keepsItsPlaceInABatch(backend: String, isArray: Bool) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/long batch \(isArray)"
        let operations: [(op: String, id: String, more: [String: String])] = [
            ("upsert", "a", ["item": #"{"n":1}"#]), ("patch", "a", ["patch": Self.long]),
            ("patch", "a", ["patch": #"{"n":null,"member 1":2}"#]), ("patch", "none \(isArray)", ["patch": Self.long]),
            ("upsert", "b", ["item": "2"]), ("patch", "b", ["patch": Self.long]), ("delete", "b", [:]),
        ]
        let replies: [JSON?]
        if isArray {
            let elements = operations.enumerated().map { number, operation in
                Connection.request(
                    "record.\(operation.op)", Connection.params(collection, operation.id, more: operation.more),
                    id: "\(number)")
            }
            try connection.sendFrame("[\(elements.joined(separator: ","))]")
            let batch = try connection.receiveBatch()
            replies = operations.indices.map { number in batch.first { $0.id.text == "\(number)" }?.result }
        } else {
            let list = operations.map { operation in
                let params = Connection.params(collection, operation.id, more: operation.more)
                return #"{"op":"\#(operation.op)",\#(params.dropFirst())"#
            }
            let reply = try connection.call("record.batch", #"{"operations":[\#(list.joined(separator: ","))]}"#)
            replies = (reply.result?["results"]?.elements ?? []).map { $0["result"] }
        }
        try #require(replies.count == operations.count)
        #expect(replies[1]?["item"]?["n"]?.text == "1")
        #expect(replies[2]?["item"]?["n"] == nil && replies[2]?["item"]?["member 4999"]?.text == "1")
        #expect(replies[3] == nil)
        #expect(replies[5]?["item"]?["member 4999"]?.text == "1")
        #expect(replies[6]?.text == "{}")
        #expect(
            try connection.read(collection, "a", fields: #"["member 1"]"#).result?["item"]?["member 1"]?.text == "2")
        #expect(try connection.item(collection, "b") == nil)
    }

    /// No patch is lost beside others of the same record, long and short.
    @Test(arguments: Backends.collections)
    func isAtomicAgainstOtherPatches(backend: String) async throws {
        let collection = "\(backend)/long counter"
        _ = try Daemon.shared.connect().create(collection, "n", "{}")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
                let connection = try Daemon.shared.connect()
                group.addTask {
                    for round in 1...10 {
                        let patch =
                            writer < 2
                            ? #"{"long \#(writer)":\#(Self.long),"w\#(writer)":\#(round)}"#
                            : #"{"w\#(writer)":\#(round)}"#
                        let reply = try connection.patch(collection, "n", patch)
                        guard reply.result != nil else { throw Failure("\(reply)") }
                    }
                }
            }
            try await group.waitForAll()
        }
        let item = try #require(try Daemon.shared.connect().read(collection, "n").result?["item"])
        for writer in 0..<6 { #expect(item["w\(writer)"]?.integer == 10) }
    }

    /// With `atomic` all take effect or none, long ones too.
    @Test(arguments: [false, true])
    func isPartOfATransaction(isLastRefused: Bool) throws {
        let connection = try Daemon.shared.connect()
        let collection = #""collection":"main/atomic""#
        let patch = #"{"op":"patch",\#(collection),"id":"a\#(isLastRefused)","patch":\#(Self.long),"upsert":true}"#
        let last =
            isLastRefused
            ? #"{"op":"check",\#(collection),"id":"none","ifRevision":"x"}"#
            : #"{"op":"upsert",\#(collection),"id":"b","item":1}"#
        let reply = try connection.call("record.batch", #"{"atomic":true,"operations":[\#(patch),\#(last)]}"#)
        #expect((reply.result == nil) == isLastRefused)
        #expect((try connection.item("main/atomic", "a\(isLastRefused)") == nil) == isLastRefused)
    }

    /// What no longer fits into the reply is not applied, nor what is behind it.
    @Test func whatDoesNotFitIntoTheReplyIsNotApplied() throws {
        let daemon = try Daemon(Configuration(limits: "item_bytes: 1MiB\nframe_bytes: 2MiB"))
        let connection = try daemon.connect()
        let text = String(repeating: "x", count: 900_000)
        #expect(try connection.create("c", "a", #"{"text":"\#(text)"}"#).result != nil)
        #expect(try connection.create("c", "b", "{}").result != nil)
        let patches = (0..<5).map { #"{"op":"patch","collection":"c","id":"a","patch":{"n":\#($0)}}"# }
        let last = #"{"op":"patch","collection":"c","id":"b","patch":{"n":1}}"#
        let reply = try connection.call(
            "record.batch", #"{"operations":[\#((patches + [last]).joined(separator: ","))]}"#)
        let results = reply.result?["results"]?.elements ?? []
        #expect(results.map { $0["result"] != nil } == [true, true, false, false, false, false])
        #expect(try connection.read("c", "a", fields: #"["n"]"#).result?["item"]?["n"]?.text == "1")
        #expect(try connection.item("c", "b") == "{}")
    }
}
