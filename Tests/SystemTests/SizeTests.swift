import CRUDTestSupport
import Glibc
import Testing

/// What collections and backends take: `collection.describe` with `sizes`, `backend.list`, and what crudctl shows.
@Suite struct SizeTests {
    private static let backends = """
        main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
        files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
        child: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}
        fast: {plugin: memory}
        """

    private static func daemon() throws -> Daemon {
        let rules = ["main", "files", "child", "fast"].map { "\"\($0)*\": {backend: \($0)}" }
        return try Daemon(
            Configuration(backends: backends, collections: rules.joined(separator: "\n")))
    }

    private static func crudctl(_ arguments: String..., daemon: Daemon) throws -> Command.Outcome {
        try Command.run(
            BuildProducts.path(of: "crudctl"), arguments, environment: ["CRUDD_SOCKET": daemon.socketPath])
    }

    @Test(arguments: ["main", "files", "child", "fast"])
    func collectionsHaveSizes(_ backend: String) throws {
        let daemon = try Self.daemon()
        let connection = try daemon.connect()
        func size(_ collection: String) throws -> (count: Int?, bytes: Int?, isEstimate: Bool?) {
            let params = #"{"collection":"\#(collection)","sizes":true}"#
            let result = try #require(try connection.call("collection.describe", params).result)
            return (result["count"]?.integer, result["bytes"]?.integer, result["estimated"]?.boolean)
        }
        #expect(try size("\(backend)-none") == (0, 0, false))
        for id in ["a", "bc"] { #expect(try connection.create("\(backend)-few", id, #""four""#).result != nil) }
        #expect(try size("\(backend)-few") == (2, 15, false))
        for number in 0..<300 {
            #expect(try connection.create("\(backend)-many", "\(1000 + number)", #""four""#).result != nil)
        }
        #expect(try size("\(backend)-many") == (300, 3000, true))
        // The first mebibyte is enough to estimate by.
        let item = "\"\(String(repeating: "x", count: 998))\""
        let long = "\"\(String(repeating: "x", count: 1_500_000))\""
        #expect(try connection.create("\(backend)-long", "0000", long).result != nil)
        #expect(try connection.create("\(backend)-long", "1000", item).result != nil)
        #expect(try size("\(backend)-long") == (2, 3_000_012, true))
        let plain = try connection.call("collection.describe", #"{"collection":"\#(backend)-few"}"#).result
        #expect(plain?["bytes"] == nil && plain?["estimated"] == nil)
    }

    @Test func backendsHavePathAndSpace() throws {
        let daemon = try Self.daemon()
        let connection = try daemon.connect()
        for backend in ["main", "files", "child", "fast"] {
            let item = "\"\(String(repeating: "x", count: 300_000))\""
            #expect(try connection.create("\(backend)-1", "a", item).result != nil)
        }
        for (name, file) in [("main", "main.sqlite"), ("files", "files"), ("child", "child.sqlite")] {
            let backend = try #require(try connection.backend(name))
            #expect(backend["path"]?.string == "\(daemon.installation.path)/\(file)")
            #expect(backend["bytes"]?.integer ?? 0 > 300_000, "\(backend)")
            #expect(backend["freeBytes"]?.integer ?? -1 >= 0)
        }
        let memory = try #require(try connection.backend("fast"))
        #expect(memory["path"] == nil && memory["bytes"] == nil && memory["freeBytes"] == nil)
        let table = try Self.crudctl("backends", "-o", "table", daemon: daemon)
        #expect(table.output.hasPrefix("NAME   STATE  PLUGIN      BYTES"), "\(table.output)")
        #expect(table.output.contains(" MiB") || table.output.contains(" KiB"))
    }

    /// What it does not tell is left out; everything else is served, and listed, as long as it hangs.
    @Test func aDiskMayHang() throws {
        let disk = try FaultyDisk()
        let configuration = Configuration(
            backends: Self.backends, collections: "\"*\": {backend: main}", loops: 1)
        let daemon = try Daemon(on: try Installation(configuration), environment: disk.variables)
        let (administrator, client) = (try daemon.connect(), try daemon.connect())
        try disk.fail("hang", "main.sqlite")
        for _ in 0..<2 {
            let main = try #require(try administrator.backend("main"))
            #expect(main["path"] != nil && main["bytes"] == nil && main["freeBytes"] == nil, "\(main)")
            #expect(try administrator.backend("files")?["bytes"] != nil)
            #expect(try client.call("daemon.ping").result != nil)
            #expect(try administrator.call("session.list").result != nil)
        }
        #expect(disk.log.count == 1, "one thread hangs")
        try disk.heal()
        let deadline = Deadline()
        while try administrator.backend("main")?["freeBytes"] == nil {
            guard !deadline.hasPassed else { throw Failure("it is not asked again") }
        }
    }

    @Test func crudctlListsSizes() throws {
        let daemon = try Self.daemon()
        let connection = try daemon.connect()
        for number in 0..<300 { #expect(try connection.create("main-c", "\(1000 + number)", "1").result != nil) }
        #expect(try connection.create("fast-b", "a", "1").result != nil)
        let table = try Self.crudctl("collections", "--sizes", "-o", "table", daemon: daemon)
        let rows = [
            "NAME    BACKEND  FORMAT  RECORDS  BYTES", "fast-b  fast     json    1        2 B",
            "main-c  main     json    300      ~1 KiB",
        ]
        #expect(table.output == rows.joined(separator: "\n") + "\n" && table.errors.isEmpty, "\(table)")
        let json = try Self.crudctl("collections", "--sizes", daemon: daemon).output
        #expect(
            json == #"{"collections":[{"name":"fast-b","backend":"fast","format":"json","records":1,"bytes":2,"#
                + #""estimated":false},{"name":"main-c","backend":"main","format":"json","records":300,"bytes":1500,"#
                + #""estimated":true}]}"# + "\n")
    }
}
