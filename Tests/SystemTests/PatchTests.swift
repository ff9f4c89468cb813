import CRUDTestSupport
import Testing

/// `record.patch`.
@Suite(.daemon(Backends.configuration, loops: [nil, 4])) struct PatchTests {
    /// The examples of RFC 7396, appendix A: item, patch, result.
    @Test(
        arguments: [
            (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
            (#"{"a":"b"}"#, #"{"a":null}"#, "{}"),
            (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
            (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
            (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
            (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
            (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
            (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
            (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
            (#"{"a":"foo"}"#, "null", "null"),
            (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
            (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
            ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
            ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
        ], Backends.collections)
    func doesWhatRFC7396Says(example: (item: String, patch: String, result: String), backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/rfc7396"
        let created = try connection.upsert(collection, example.item + example.patch, example.item)
        let reply = try connection.patch(collection, example.item + example.patch, example.patch)
        #expect(reply.result?["item"]?.text == example.result)
        let record = try connection.read(collection, example.item + example.patch).result
        #expect(record?["item"]?.text == example.result)
        #expect(record?["revision"]?.text == reply.result?["revision"]?.text)
        #expect(record?["revision"]?.text != created.result?["revision"]?.text)
        #expect(reply.result?.members?.map(\.name) == ["revision", "item"])
    }

    @Test(arguments: Backends.collections)
    func keepsWhatItDoesNotTouch(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/untouched"
        _ = try connection.create(collection, "a", #"{"z":1e400,"a":0.10,"é":123456789012345678901234567890,"n":null}"#)
        let result = try connection.patch(collection, "a", #"{"a":1.0,"new":[1.50]}"#).result
        let expected = #"{"z":1e400,"a":1.0,"é":123456789012345678901234567890,"n":null,"new":[1.50]}"#
        #expect(result?["item"]?.text == expected)
        #expect(try connection.item(collection, "a") == expected)
    }

    @Test(arguments: Backends.collections)
    func aMissingRecordIsNotFoundOrStartsEmpty(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/missing"
        #expect(try connection.patch(collection, "a", #"{"x":1}"#).error?.name == "record_not_found")
        #expect(try connection.patch(collection, "a", "1", more: ["upsert": "false"]).error?.name == "record_not_found")
        #expect(try connection.item(collection, "a") == nil)
        let upsert = try connection.patch(collection, "a", #"{"x":{"y":null,"z":1}}"#, more: ["upsert": "true"])
        #expect(upsert.result?["item"]?.text == #"{"x":{"z":1}}"#)
        #expect(try connection.patch(collection, "b", "7", more: ["upsert": "true"]).result?["item"]?.text == "7")
        #expect(try connection.patch(collection, "a", #"{"x":null}"#, more: ["upsert": "true"]).result != nil)
        #expect(try connection.item(collection, "a") == "{}")
    }

    @Test(arguments: Backends.collections)
    func mindsIfRevision(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/conditional"
        for upsert in ["false", "true"] {
            let gone = try connection.patch(
                collection, "a", #"{"x":1}"#, more: ["upsert": upsert, "ifRevision": #""none""#]
            ).error
            #expect(gone?.name == (upsert == "true" ? "revision_mismatch" : "record_not_found"))
            #expect(gone?.details?["revision"] == nil)
        }
        let first = try #require(try connection.create(collection, "a", "{}").result?["revision"]?.text)
        for upsert in ["false", "true"] {
            let stale = try connection.patch(
                collection, "a", #"{"x":1}"#, more: ["upsert": upsert, "ifRevision": #""none""#]
            ).error
            #expect(stale?.name == "revision_mismatch")
            #expect(stale?.details?["revision"]?.text == first)
        }
        let patched = try connection.patch(collection, "a", #"{"x":1}"#, more: ["ifRevision": first]).result
        #expect(patched?["item"]?.text == #"{"x":1}"#)
        #expect(try connection.patch(collection, "a", "{}", more: ["ifRevision": first]).error != nil)
    }

    /// What one connection sends takes effect in order, patches and other writes of one record mixed.
    @Test(arguments: Backends.collections)
    func keepsItsPlaceAmongOtherWrites(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/order"
        var requests: [(String, String)] = []
        for number in 0..<50 {
            requests.append(("record.upsert", Connection.params(collection, "a", item: #"{"n":\#(number)}"#)))
            requests.append(("record.patch", Connection.params(collection, "a", more: ["patch": #"{"p":1}"#])))
            requests.append(("record.patch", Connection.params(collection, "a", more: ["patch": #"{"q":1}"#])))
            requests.append(("record.upsert", Connection.params(collection, "b", item: "\(number)")))
            requests.append(("record.delete", Connection.params(collection, "a")))
            requests.append(("record.patch", Connection.params(collection, "a", more: ["patch": "1"])))
        }
        let replies = try connection.pipeline(requests)
        for number in 0..<50 {
            #expect(replies[number * 6 + 1].result?["item"]?.text == #"{"n":\#(number),"p":1}"#)
            #expect(replies[number * 6 + 2].result?["item"]?.text == #"{"n":\#(number),"p":1,"q":1}"#)
            #expect(replies[number * 6 + 5].error?.name == "record_not_found")
        }
    }

    /// Every patch is there in the end: unconditional ones of fields of their own, and conditional ones of one counter.
    @Test(arguments: Backends.collections, [nil, 4])
    func isAtomicAgainstOtherPatches(backend: String, loops: Int?) async throws {
        let daemon = try Daemon.shared(loops: loops)
        let collection = "\(backend)/counter"
        _ = try daemon.connect().create(collection, "n", #"{"count":0}"#)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<Self.writers {
                let connection = try daemon.connect()
                group.addTask { try Self.increment(collection, writer, connection) }
            }
            try await group.waitForAll()
        }
        let item = try #require(try daemon.connect().read(collection, "n").result?["item"])
        #expect(item["count"]?.integer == Self.writers * Self.rounds)
        for writer in 0..<Self.writers { #expect(item["w\(writer)"]?.integer == Self.rounds) }
    }

    private static let writers = 16
    private static let rounds = 10

    private static func increment(_ collection: String, _ writer: Int, _ connection: Connection) throws {
        for round in 1...rounds {
            let own = try connection.patch(collection, "n", #"{"w\#(writer)":\#(round)}"#)
            guard own.result != nil else { throw Failure("\(own)") }
            while true {
                guard let record = try connection.read(collection, "n").result, let count = record["item"]?["count"],
                    let number = count.integer, let revision = record["revision"]?.text
                else { throw Failure("no counter") }
                let reply = try connection.patch(
                    collection, "n", #"{"count":\#(number + 1)}"#, more: ["ifRevision": revision])
                if reply.result != nil { break }
                guard reply.error?.name == "revision_mismatch" else { throw Failure("\(reply)") }
            }
        }
    }

    @Test func storesEachNameOnceAsItWasWrittenLast() throws {
        let connection = try Daemon.shared.connect()
        _ = try connection.create("main/normal", "a", #"{"a":1,"\u0061":2,"b":{"c":1,"c":{"d":1,"d":2}}}"#)
        #expect(try connection.item("main/normal", "a") == #"{"\u0061":2,"b":{"c":{"d":2}}}"#)
        let reply = try connection.patch("main/normal", "a", #"{"a":[{"x":1,"x":2}]}"#)
        #expect(reply.result?["item"]?["a"]?.text == #"[{"x":2}]"# && reply.result?["item"]?["b"] != nil)
        #expect(try connection.item("main/normal", "a") == reply.result?["item"]?.text)
    }
}

/// What a patch must not make.
@Suite(.daemon(Configuration(limits: "item_bytes: 16KiB\njson_depth: 8\nframe_bytes: 64KiB")))
struct PatchLimitTests {
    @Test func theResultIsAnItemLikeAnyOther() throws {
        let connection = try Daemon.shared.connect()
        let text = String(repeating: "x", count: 9000)
        _ = try connection.create("c", "a", #"{"a":"\#(text)"}"#)
        let long = try connection.patch("c", "a", #"{"b":"\#(text)"}"#).error
        #expect(long?.name == "limit_exceeded")
        #expect(long?.details?["limit"]?.string == "item_bytes")
        let nested = String(repeating: #"{"a":"#, count: 8) + "1" + String(repeating: "}", count: 8)
        #expect(try connection.upsert("c", "b", nested).result != nil)
        #expect(try connection.upsert("c", "b", #"{"a":1}"#).result != nil)
        let deep = try connection.patch("c", "b", #"{"a":\#(nested)}"#).error
        #expect(deep?.name == "limit_exceeded")
        #expect(deep?.details?["limit"]?.string == "json_depth")
        #expect(try connection.item("c", "a") == #"{"a":"\#(text)"}"#)
        #expect(try connection.item("c", "b") == #"{"a":1}"#)
    }

    /// Of several replies in one frame those that fit are sent; what has none was not executed.
    @Test func whatWouldNotFitTheReplyIsNotExecuted() throws {
        let connection = try Daemon.shared.connect()
        let text = String(repeating: "x", count: 15_000)
        for id in 0..<5 { _ = try connection.create("fit", "\(id)", #"{"a":"\#(text)"}"#) }
        let elements = (0..<5).map { id in
            Connection.request(
                "record.patch", Connection.params("fit", "\(id)", more: ["patch": #"{"n":1}"#]), id: "\(id)")
        }
        try connection.sendFrame("[\(elements.joined(separator: ","))]")
        let replies = try connection.receiveBatch()
        #expect(replies.count == 5)
        #expect(replies.contains { $0.result != nil })
        #expect(replies.contains { $0.error?.details?["limit"]?.string == "frame_bytes" })
        for reply in replies {
            let item = try connection.item("fit", reply.id.text)
            #expect(item?.contains(#""n":1"#) == (reply.result != nil))
        }
    }
}

/// Collections on several backends: `NAME/…` lives on the backend NAME.
enum Backends {
    static let configuration = Configuration(
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
            memory: {plugin: memory}
            postgresql: {plugin: postgresql, options: \(PostgreSQLServer.options("main"))}
            files: {plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}
            """,
        collections: """
            "main/*": {backend: main}
            "other/*": {backend: other}
            "memory/*": {backend: memory}
            "postgresql/*": {backend: postgresql}
            "files/*": {backend: files}
            """)
    static let collections = ["main", "memory", "postgresql", "files"]
}

extension Connection {
    func patch(_ collection: String, _ id: String, _ patch: String, more: [String: String] = [:]) throws -> Reply {
        try call(
            "record.patch",
            Self.params(collection, id, more: more.merging(["patch": patch]) { old, _ in old }))
    }
}
