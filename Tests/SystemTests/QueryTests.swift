import CRUDTestSupport
import Testing

/// `record.query`, `record.count` and `record.deleteMatching`.
@Suite(.daemon(Backends.configuration)) struct QueryTests {
    /// Items of all kinds, by id.
    static let items: [(id: String, item: String)] = [
        ("a", #"{"n":1,"s":"x","nested":{"k":true}}"#), ("b", #"{"n":2,"s":"y","nested":{"k":false}}"#),
        ("ba", #"{"n":null,"s":"é"}"#), ("bb", #"{"n":"2","s":7}"#), ("c", #"{"n":10,"s":"x"}"#),
        ("d", #"{"n":2.0,"s":"zz"}"#), ("e", "[1,2]"), ("f", "7"), ("g", #"{"n":[1],"s":"X"}"#), ("h", #"{"n":{}}"#),
        ("é", #"{"n":true}"#), ("😀", #"{"n":-1e400}"#),
    ]

    private func fill(_ collection: String, _ connection: Connection) throws {
        _ = try connection.pipeline(
            Self.items.map { ("record.upsert", Connection.params(collection, $0.id, item: $0.item)) })
    }

    // MARK: Selecting and sorting

    @Test(
        arguments: [
            ("{}", "a b ba bb c d e f g h é 😀"),
            (#"{"prefix":"b"}"#, "b ba bb"), (#"{"prefix":"B"}"#, ""), (#"{"prefix":""}"#, "a b ba bb c d e f g h é 😀"),
            (#"{"prefix":"\u00e9"}"#, "é"), (#"{"filter":true}"#, "a b ba bb c d e f g h é 😀"),
            (#"{"filter":false}"#, ""),
            (#"{"filter":{"op":"=","args":[{"property":"n"},2]}}"#, "b d"),
            (#"{"filter":{"op":">","args":[{"property":"n"},1]}}"#, "b c d"),
            (#"{"filter":{"op":"isNull","args":[{"property":"n"}]}}"#, "ba e f"),
            (#"{"filter":{"op":"not","args":[{"op":"=","args":[{"property":"nested.k"},true]}]}}"#, "b"),
            (#"{"filter":{"op":"like","args":[{"property":"s"},"_"]},"prefix":"b"}"#, "b ba"),
            (#"{"sort":[{"property":"n","order":"asc"}]}"#, "ba e f é 😀 a b d c bb g h"),
            (#"{"sort":[{"property":"n","order":"desc"}]}"#, "h g bb c b d a 😀 é ba e f"),
            (#"{"sort":[{"property":"s"},{"property":"n","order":"desc"}]}"#, "h 😀 é e f bb g c a b d ba"),
            (
                #"{"sort":[{"property":"n","order":"asc"}],"#
                    + #""filter":{"op":"<","args":[{"property":"n"},3]},"prefix":""}"#,
                "😀 a b d"
            ),
        ], Backends.collections)
    func findsRecordsInOrder(query: (members: String, ids: String), backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/find\(query.members.utf8.count)\(query.ids.utf8.count)\(query.members.hashValue)"
        try fill(collection, connection)
        let result = try connection.query(collection, query.members).result
        let records = result?["records"]?.elements ?? []
        #expect(records.compactMap { $0["id"]?.string }.joined(separator: " ") == query.ids)
        #expect(result?["cursor"] == nil)
        let items = Dictionary(uniqueKeysWithValues: Self.items.map { ($0.id, $0.item) })
        for record in records {
            #expect(record.members?.map(\.name) == ["id", "item", "revision"])
            #expect(record["item"]?.text == items[record["id"]?.string ?? ""])
        }
        // The same, one record at a time.
        let ids = try connection.allRecords(collection, query.members, limit: 1).map { $0["id"]?.string }
        #expect(ids.compactMap { $0 }.joined(separator: " ") == query.ids)
        if !query.members.contains("sort") {
            let count = try connection.call("record.count", Connection.selection(collection, query.members))
            #expect(count.result?["count"]?.integer == records.count)
        }
    }

    @Test(arguments: Backends.collections)
    func showsPartsOfItems(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/parts"
        try fill(collection, connection)
        for sort in ["", #","sort":[{"property":"n","order":"asc"}]"#] {
            func items(_ members: String) throws -> [String?] {
                try connection.query(collection, #"{\#(members),"prefix":"b"\#(sort)}"#)
                    .result?["records"]?.elements?.map { $0["item"]?.text } ?? []
            }
            let all = try items(#""fields":["s","nested.k"]"#)
            #expect(Set(all) == [#"{"s":"y","nested":{"k":false}}"#, #"{"s":"é"}"#, #"{"s":7}"#])
            #expect(try items(#""fields":["absent"]"#) == ["{}", "{}", "{}"])
            #expect(try items(#""fields":[]"#) == [nil, nil, nil])
        }
    }

    @Test(arguments: Backends.collections)
    func aCollectionThatIsNotThereIsEmpty(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/never written"
        #expect(try connection.query(collection, #"{"sort":[{"property":"n"}]}"#).result?.text == #"{"records":[]}"#)
        #expect(try connection.query(collection, #"{"filter":true}"#).result?.text == #"{"records":[]}"#)
        for members in ["{}", #"{"filter":true}"#, #"{"prefix":"x"}"#] {
            let count = try connection.call("record.count", Connection.selection(collection, members))
            #expect(count.result?.text == #"{"count":0}"#)
        }
        let deleted = try connection.call("record.deleteMatching", Connection.selection(collection, #"{"all":true}"#))
        #expect(deleted.result?.text == #"{"deleted":0}"#)
    }

    @Test(arguments: Backends.collections)
    func explainsItself(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/explain"
        try fill(collection, connection)
        let filter = #""filter":{"op":"=","args":[{"property":"n"},2]}"#
        for (members, sort) in [(filter, "id"), (#"\#(filter),"sort":[{"property":"s"}]"#, "host")] {
            let result = try connection.query(collection, #"{\#(members),"explain":true}"#).result
            let plan = try #require(result?["plan"])
            #expect(plan.members?.map(\.name) == ["index", "sort", "scanned"])
            #expect(plan["sort"]?.string == sort)
            #expect(plan["index"]?.text == "null")
            #expect(plan["scanned"]?.integer == Self.items.count)
            #expect(try connection.query(collection, #"{\#(members),"explain":false}"#).result?["plan"] == nil)
        }
    }

    // MARK: Errors

    @Test(arguments: [
        (#"{"filter":null}"#, "invalid_query"), (#"{"filter":{"op":"=","args":[{"property":"n"}]}}"#, "invalid_query"),
        (#"{"filter":{"op":"nope","args":[]}}"#, "invalid_query"), (#"{"filter":{"property":"n"}}"#, "invalid_query"),
        (#"{"filter":{"op":"like","args":[{"property":"n"},"\\x"]}}"#, "invalid_query"),
        (#"{"cursor":""}"#, "invalid_query"), (#"{"cursor":"!"}"#, "invalid_query"),
        (#"{"cursor":"AAAAAAAAAAAAAAAAAAAAAAAA"}"#, "invalid_query"), (#"{"cursor":1}"#, "invalid_params"),
        (#"{"sort":[1]}"#, "invalid_params"), (#"{"sort":[{"property":"n","order":"up"}]}"#, "invalid_params"),
        (#"{"sort":{}}"#, "invalid_params"), (#"{"limit":0}"#, "invalid_params"), (#"{"limit":-5}"#, "invalid_params"),
        (#"{"limit":1.5}"#, "invalid_params"), (#"{"limit":"1"}"#, "invalid_params"),
        (#"{"limit":10001}"#, "limit_exceeded"), (#"{"limit":99999999999999999999}"#, "limit_exceeded"),
        (#"{"explain":1}"#, "invalid_params"), (#"{"prefix":1}"#, "invalid_params"),
        (#"{"fields":"a"}"#, "invalid_params"), (#"{"all":true}"#, "invalid_params"),
    ])
    func refusesWhatMeansNothing(query: (members: String, name: String)) throws {
        let error = try Daemon.shared.connect().query("main/errors", query.members).error
        #expect(error?.name == query.name)
        if query.name == "limit_exceeded" { #expect(error?.details?["limit"]?.string == "query_limit") }
    }

    @Test func aCursorBelongsToItsQuery() throws {
        let connection = try Daemon.shared.connect()
        try fill("main/cursor", connection)
        try fill("main/cursor2", connection)
        let members = #""filter":{"op":">=","args":[{"property":"n"},1]},"sort":[{"property":"n"}],"prefix":"""#
        let cursor = try #require(
            try connection.query("main/cursor", #"{\#(members),"limit":1}"#).result?["cursor"]?.text)
        let same = #""filter": {"args":[{"property":"n"},1],"op":">="},"sort":[{"property":"n","order":"asc"}]"#
        let next = try connection.query("main/cursor", #"{\#(same),"cursor":\#(cursor),"limit":5}"#).result
        #expect(next?["records"]?.elements?.map { $0["id"]?.string } == ["b", "d", "c"])
        for other in [
            same.replacing("1]", with: "2]"), same.replacing("asc", with: "desc"), same + #","prefix":"b""#,
            #""sort":[{"property":"n"}]"#, #""filter":true"#,
        ] {
            let error = try connection.query("main/cursor", #"{\#(other),"cursor":\#(cursor)}"#).error
            #expect(error?.name == "invalid_query")
        }
        #expect(try connection.query("main/cursor2", #"{\#(same),"cursor":\#(cursor)}"#).error != nil)
    }

    // MARK: Pages

    /// Records that are there throughout are met once each, whatever is written meanwhile.
    @Test(
        arguments: [
            "", #","sort":[{"property":"s"}]"#, #","sort":[{"property":"s","order":"desc"},{"property":"n"}]"#,
            #","sort":[{"property":"none"}]"#, #","filter":{"op":">=","args":[{"property":"n"},0]}"#,
        ], Backends.collections)
    func meetsEveryRecordOnce(members: String, backend: String) async throws {
        let collection = "\(backend)/pages\(members.utf8.count)"
        let count = 300
        _ = try Daemon.shared.connect().pipeline(
            (0..<count).map {
                let item = #"{"n":\#($0),"s":"\#($0 * 7919 % 13)","kept":true}"#
                return ("record.create", Connection.params(collection, "k\($0)", item: item))
            })
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try Self.disturb(collection, Daemon.shared.connect()) }
            group.addTask {
                let connection = try Daemon.shared.connect()
                for limit in [7, 50, 299] {
                    let records = try connection.allRecords(collection, "{\(members.dropFirst())}", limit: limit)
                    let kept = records.filter { $0["item"]?["kept"] != nil }.compactMap { $0["id"]?.string }
                    #expect(kept.count == count)
                    #expect(Set(kept).count == count)
                }
            }
            try await group.waitForAll()
        }
    }

    /// Creates, changes and deletes other records.
    private static func disturb(_ collection: String, _ connection: Connection) throws {
        for round in 0..<30 {
            _ = try connection.pipeline(
                (0..<40).map { number in
                    let id = "\(number.isMultiple(of: 2) ? "k1x" : "x")\(number)"
                    let item = #"{"n":\#((number + round) % 17),"s":"\#(round % 13)"}"#
                    return round % 3 == 2
                        ? ("record.delete", Connection.params(collection, id))
                        : ("record.upsert", Connection.params(collection, id, item: item))
                })
        }
    }

    @Test func aCursorOutlivesTheDaemon() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        for id in ["a", "b", "c"] { _ = try connection.create("c", id, #"{"n":1}"#) }
        let members = #""sort":[{"property":"n","order":"desc"}]"#
        let cursor = try #require(try connection.query("c", #"{\#(members),"limit":2}"#).result?["cursor"]?.text)
        try daemon.stop()
        let again = try daemon.restarted()
        let page = try again.connect().query("c", #"{\#(members),"cursor":\#(cursor)}"#).result
        #expect(page?["records"]?.elements?.map { $0["id"]?.string } == ["c"])
        #expect(page?["cursor"] == nil)
    }

    /// A page is never longer than a frame.
    @Test func endsAPageThatWouldNotFitEarly() throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 64KiB"))
        let connection = try daemon.connect()
        let text = String(repeating: "x", count: 20_000)
        for number in 0..<10 { _ = try connection.create("c", "\(number)", #"{"n":\#(number % 3),"t":"\#(text)"}"#) }
        for members in [
            "{}", #"{"filter":{"op":">=","args":[{"property":"n"},0]}}"#, #"{"sort":[{"property":"n"}]}"#,
            #"{"sort":[{"property":"t"}]}"#,
        ] {
            let first = try connection.query("c", members).result
            #expect((1...3).contains(first?["records"]?.elements?.count ?? 0))
            #expect(first?["cursor"] != nil)
            let ids = try connection.allRecords("c", members, limit: 1000).compactMap { $0["id"]?.string }
            #expect(ids.sorted() == (0..<10).map(String.init))
        }
        try daemon.stop()
    }

    // MARK: Deleting

    @Test(arguments: Backends.collections)
    func deletesWhatMatches(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/delete"
        _ = try connection.pipeline(
            (0..<700).map {
                (
                    "record.create",
                    Connection.params(collection, "\($0 % 2 == 0 ? "e" : "o")\($0)", item: #"{"n":\#($0)}"#)
                )
            })
        func delete(_ members: String) throws -> Int? {
            try connection.call("record.deleteMatching", Connection.selection(collection, members)).result?["deleted"]?
                .integer
        }
        let below = #"{"op":"<","args":[{"property":"n"},600]}"#
        #expect(try delete(#"{"filter":\#(below),"prefix":"e"}"#) == 300)
        #expect(try delete(#"{"filter":\#(below),"prefix":"e"}"#) == 0)
        #expect(try delete(#"{"filter":\#(below)}"#) == 300)
        #expect(try delete(#"{"prefix":"e"}"#) == 50)
        #expect(try delete(#"{"all":true}"#) == 50)
        #expect(try connection.query(collection, "{}").result?.text == #"{"records":[]}"#)
    }

    @Test(arguments: [
        "{}", #"{"all":false}"#, #"{"all":true,"prefix":"a"}"#, #"{"all":true,"filter":true}"#, #"{"all":1}"#,
        #"{"all":true,"prefix":""}"#, #"{"prefix":""}"#, #"{"filter":true}"#, #"{"filter":false}"#,
        #"{"prefix":"","filter":true}"#, #"{"filter":{"op":"not","args":[false]}}"#,
        #"{"filter":{"op":"or","args":[{"op":"and","args":[true,true]},false]}}"#,
    ])
    func deletingEverythingHasToBeSaid(members: String) throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.upsert("main/said", "a", #"{"n":1}"#).result != nil)
        let reply = try connection.call("record.deleteMatching", Connection.selection("main/said", members))
        #expect(reply.error?.name == "invalid_params")
        #expect(try connection.exists("main/said", "a") == true)
    }

    /// A prefix or a property does, whatever else is said.
    @Test(arguments: [
        #"{"prefix":"a","filter":true}"#, #"{"prefix":"","filter":{"op":"=","args":[{"property":"n"},1]}}"#,
        #"{"filter":{"op":"or","args":[{"op":"isNull","args":[{"property":"m"}]},true]}}"#,
    ])
    func deletingSomeIsSelective(members: String) throws {
        let connection = try Daemon.shared.connect()
        // The cases are executed at the same time.
        let collection = "main/selective\(members.utf8.count)"
        #expect(try connection.upsert(collection, "a", #"{"n":1}"#).result != nil)
        let reply = try connection.call("record.deleteMatching", Connection.selection(collection, members))
        #expect(reply.result?["deleted"]?.integer == 1, "\(reply)")
    }

    /// What comes before it is deleted, what comes behind it is not.
    @Test(arguments: Backends.collections)
    func deletingKeepsItsPlace(backend: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/place"
        var requests: [(String, String)] = []
        for _ in 0..<20 {
            for id in 0..<5 { requests.append(("record.upsert", Connection.params(collection, "\(id)", item: "1"))) }
            requests.append(("record.deleteMatching", Connection.selection(collection, #"{"all":true}"#)))
            requests.append(("record.create", Connection.params(collection, "0", item: "1")))
            requests.append(("record.count", Connection.selection(collection, "{}")))
        }
        let replies = try connection.pipeline(requests)
        for round in 0..<20 {
            #expect(replies[round * 8 + 5].result?["deleted"]?.integer == 5)
            #expect(replies[round * 8 + 6].result != nil)
            #expect(replies[round * 8 + 7].result?["count"]?.integer == 1)
        }
    }
}

extension Connection {
    /// `record.query`; `members` is an object's text.
    func query(_ collection: String, _ members: String) throws -> Reply {
        try call("record.query", Self.selection(collection, members))
    }

    /// The records of all pages.
    func allRecords(_ collection: String, _ members: String, limit: Int) throws -> [JSON] {
        var records: [JSON] = []
        var cursor: String?
        repeat {
            var more = #"{"limit":\#(limit)"#
            if let cursor { more += #","cursor":\#(cursor)"# }
            if members != "{}" { more += "," + members.dropFirst().dropLast() }
            let reply = try query(collection, more + "}")
            guard let page = reply.result?["records"]?.elements else { throw Failure("\(reply)") }
            records += page
            cursor = reply.result?["cursor"]?.text
        } while cursor != nil
        return records
    }

    /// `params` of a method on a collection; `members` is an object's text.
    static func selection(_ collection: String, _ members: String) -> String {
        let rest = members == "{}" ? "" : "," + members.dropFirst().dropLast()
        return #"{"collection":\#(JSON.quote(collection))\#(rest)}"#
    }
}
