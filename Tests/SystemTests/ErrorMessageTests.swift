import CRUDTestSupport
import Testing

/// Messages name the collection and, where there is one, the record, whatever the error is.
@Suite struct ErrorMessageTests {
    private static let collections = """
        "x*": {backend: files, format: xml}
        "off": {backend: down}
        "c": {backend: main}
        """

    private static let configuration = Configuration(
        socket: #"mode: "0666""#,
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
            down: {plugin: postgresql, options: {connection: "host=$DIRECTORY/none dbname=none"}}
            """, collections: collections, access: #"- {users: [root], allow: [read, write, admin]}"#,
        limits: "frame_bytes: 64KiB\nitem_bytes: 1KiB")

    private static let deep = String(repeating: "[", count: 130) + String(repeating: "]", count: 130)
    private static let long = "\"" + String(repeating: "x", count: 2000) + "\""

    @Test(arguments: [
        ("record.read", "nowhere", "a", ""), ("record.create", "nowhere", "a", #","item":1"#),
        ("record.create", "x", "a", #","item":null"#),
        ("record.patch", "x", "a", #","patch":{"b":[null]},"upsert":true"#),
        ("record.upsert", "c", "a", #","item":\#(long)"#), ("record.read", "c", "a", ""),
        ("record.update", "c", "a", #","item":1"#), ("record.read", "off", "a", ""),
        ("record.exists", "off", "a", ""), ("record.upsert", "off", "a", #","item":1"#),
        ("record.count", "off", nil, ""), ("record.query", "off", nil, ""), ("record.query", "nowhere", nil, ""),
        ("collection.describe", "off", nil, ""), ("collection.changes", "c", nil, ""),
        ("collection.changes", "x", nil, ""), ("record.deleteMatching", "off", nil, #","all":true"#),
        ("collection.drop", "nowhere", nil, ""), ("collection.drop", "full", nil, #","ifEmpty":true"#),
        // invalid_params, of the request's reader and of handlers
        ("record.create", "c", "a", ""), ("record.read", "c", "a", #","fields":5"#),
        ("record.query", "c", nil, #","x":1"#),
        ("record.query", "c", nil, #","limit":0"#), ("record.deleteMatching", "c", nil, ""),
        ("record.readMany", "c", nil, #","ids":[1]"#), ("record.upsert", "c", "a", #","item":1,"ttl":0"#),
        ("record.read", "c", "a", #","fields":["a."]"#),
        // invalid_query
        ("record.query", "c", nil, #","filter":5"#), ("record.count", "c", nil, #","filter":{"op":"no","args":[]}"#),
        ("record.query", "c", nil, #","sort":[{}]"#), ("record.query", "c", nil, #","cursor":"x""#),
        // limit_exceeded before the method is looked at
        ("record.create", "c", "a", #","item":\#(deep)"#),
    ])
    func theCollectionAndTheRecordAreNamed(method: String, collection: String, id: String?, more: String) throws {
        var configuration = Self.configuration
        configuration.collections += "\n\"full\": {backend: main}"
        let connection = try Daemon(configuration).connect()
        #expect(try connection.create("full", "a", "1").result != nil)
        let record = id.map { #","id":"\#($0)""# } ?? ""
        let error = try connection.call(method, #"{"collection":"\#(collection)"\#(record)\#(more)}"#).error
        let message = try #require(error?.message)
        #expect(message.contains(#"collection "\#(collection)""#), "\(message)")
        if let id { #expect(message.contains(#"record "\#(id)""#), "\(message)") }
        #expect(message.components(of: "collection \"") == 1, "\(message)")
    }

    @Test(arguments: [
        (#"{"op":"create","collection":"c","id":"a"}"#, false),
        (#"{"op":"create","collection":"c","id":"a","x":1}"#, false),
        (#"{"op":"create","collection":"c","id":"a","item":\#(long)}"#, false),
        (#"{"op":"upsert","collection":"files","id":"a","item":1}"#, true),
    ])
    func theRecordOfAnOperationIsNamed(operation: String, isAtomic: Bool) throws {
        var configuration = Self.configuration
        configuration.collections += "\n\"files\": {backend: files}"
        let connection = try Daemon(configuration).connect()
        let params = #"{"operations":[{"op":"delete","collection":"c","id":"b"},\#(operation)],"atomic":\#(isAtomic)}"#
        let error = try #require(try connection.call("record.batch", params).error)
        #expect(error.details?["index"]?.integer == 1)
        #expect(error.message.contains(#"record "a" in collection ""#), "\(error.message)")
    }

    /// A member that is itself wrong names nothing.
    @Test func whatIsWrongIsNoName() throws {
        let connection = try Daemon(Self.configuration).connect()
        func message(_ params: String) throws -> String {
            try connection.call("record.read", params).error?.message ?? ""
        }
        #expect(try message(#"{"collection":5,"id":"a"}"#) == "`collection` must be a string")
        #expect(try message(#"{"collection":"c","id":5}"#) == #"collection "c": `id` must be a string"#)
        #expect(try message(#"{"collection":"c"}"#) == #"collection "c": `id` is missing"#)
        let unknown = try message(#"{"collection":"c","id":"a","x":1}"#)
        #expect(unknown.hasPrefix(#"record "a" in collection "c": `x` is not"#))
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as another user"))
    func whatIsDeniedIsNamed() throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect(as: Peer(user: 65534, group: 65534))
        let message = try #require(try connection.read("c", "a").error?.message)
        #expect(message.contains(#"record "a" in collection "c""#), "\(message)")
        let results = try connection.batch([.init("delete", "c", "a"), .init("delete", "nowhere", "b")]).results
        for (result, name) in zip(try #require(results), [#"record "a" in collection "c""#, #""b""#]) {
            let message = result["error"]?["message"]?.string
            #expect(message?.contains(name) == true, "\(message ?? "")")
        }
    }
}

extension String {
    fileprivate func components(of separator: String) -> Int { ranges(of: separator).count }
}
