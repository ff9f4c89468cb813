import CRUDTestSupport
import Testing

/// Queries, counts, patches and deletions on collections that are stored as property lists.
@Suite(.daemon(Listed.configuration)) struct FormatQueryTests {
    /// What a property list can hold, by id.
    private static let items: [(id: String, item: String)] = [
        ("a", #"{"n":1,"s":"x","nested":{"k":true},"tags":["p","q"]}"#),
        ("b", #"{"n":2,"s":"y","nested":{"k":false},"tags":["q"]}"#), ("ba", #"{"s":"é"}"#),
        ("bb", #"{"n":"2","s":7}"#), ("c", #"{"n":10,"s":"x"}"#), ("d", #"{"n":2.5,"s":"zz"}"#), ("e", "[1,2]"),
        ("f", "7"), ("é", #"{"n":true}"#),
    ]

    private func fill(_ collection: String, _ connection: Connection) throws {
        let replies = try connection.pipeline(
            Self.items.map { ("record.create", Connection.params(collection, $0.id, item: $0.item)) })
        #expect(replies.allSatisfy { $0.result != nil }, "\(replies)")
    }

    @Test(arguments: Listed.backends, Listed.formats)
    func findsAndChangesWhatMatches(backend: String, format: String) throws {
        let connection = try Daemon.shared.connect()
        let collection = "\(backend)/\(format)/items"
        try fill(collection, connection)
        let items = Dictionary(uniqueKeysWithValues: Self.items.map { ($0.id, $0.item) })
        for (members, ids) in [
            ("{}", "a b ba bb c d e f é"), (#"{"prefix":"b"}"#, "b ba bb"),
            (#"{"filter":{"op":"=","args":[{"property":"n"},2]}}"#, "b"),
            (#"{"filter":{"op":">","args":[{"property":"n"},1]}}"#, "b c d"),
            (#"{"filter":{"op":"between","args":[{"property":"n"},2,3]}}"#, "b d"),
            (#"{"filter":{"op":"in","args":[{"property":"s"},["x","é"]]}}"#, "a ba c"),
            (#"{"filter":{"op":"like","args":[{"property":"s"},"_"]},"prefix":"b"}"#, "b ba"),
            (#"{"filter":{"op":"=","args":[{"property":"nested.k"},true]}}"#, "a"),
            (#"{"filter":{"op":"a_contains","args":[{"property":"tags"},["q"]]}}"#, "a b"),
            (#"{"filter":{"op":"isNull","args":[{"property":"n"}]}}"#, "ba e f"),
            (#"{"sort":[{"property":"n"}]}"#, "ba e f é a b d c bb"),
            (#"{"sort":[{"property":"n","order":"desc"}],"prefix":"b"}"#, "bb b ba"),
        ] {
            for limit in [1, 4, 100] {
                let records = try connection.allRecords(collection, members, limit: limit)
                #expect(records.compactMap { $0["id"]?.string }.joined(separator: " ") == ids, "\(members)")
                for record in records {
                    let item = try JSON(parsing: items[record["id"]?.string ?? ""] ?? "")
                    #expect(record["item"]?.means(item) == true, "\(record.text)")
                }
            }
            guard !members.contains("sort") else { continue }
            let count = try connection.call("record.count", Connection.selection(collection, members))
            #expect(count.result?["count"]?.integer == ids.split(separator: " ").count, "\(members)")
        }
        let parts = try connection.query(collection, #"{"prefix":"b","fields":["s"]}"#).result?["records"]?.elements
        #expect(parts?.map { $0["item"]?.text } == [#"{"s":"y"}"#, #"{"s":"é"}"#, #"{"s":7}"#])

        let patched = try connection.call(
            "record.patch",
            Connection.params(collection, "a", more: ["patch": #"{"n":3,"nested":{"k":null,"l":[0.5]}}"#]))
        let expected = try JSON(parsing: #"{"n":3,"s":"x","nested":{"l":[0.5]},"tags":["p","q"]}"#)
        #expect(patched.result?["item"]?.means(expected) == true, "\(patched)")
        #expect(try connection.read(collection, "a").result?["item"]?.means(expected) == true)
        let lossy = try connection.call(
            "record.patch", Connection.params(collection, "a", more: ["patch": #"{"nested":{"l":[null]}}"#]))
        #expect(lossy.error?.name == "unsupported", "\(lossy)")
        #expect(lossy.error?.details?["path"]?.string == "nested.l[0]", "\(lossy)")

        let above = #"{"filter":{"op":">","args":[{"property":"n"},2]}}"#
        let deleted = try connection.call("record.deleteMatching", Connection.selection(collection, above))
        #expect(deleted.result?["deleted"]?.integer == 3)
        let rest = try connection.allRecords(collection, "{}", limit: 100).compactMap { $0["id"]?.string }
        #expect(rest == ["b", "ba", "bb", "e", "f", "é"])
    }
}

/// Collections of property lists: `BACKEND/FORMAT/…`.
private enum Listed {
    static let backends = ["sqlite", "filesystem", "memory", "postgresql"]
    static let formats = ["xml", "plist"]

    static let configuration = Configuration(
        backends: """
            sqlite: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            filesystem: {plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}
            memory: {plugin: memory}
            postgresql: {plugin: postgresql, options: \(PostgreSQLServer.options("main"))}
            """,
        collections: backends.flatMap { backend in
            formats.map { "\"\(backend)/\($0)/*\": {backend: \(backend), format: \($0)}" }
        }.joined(separator: "\n"))
}
