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
