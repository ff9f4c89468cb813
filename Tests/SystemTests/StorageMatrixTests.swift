import CRUDTestSupport
import Testing

/// One program, unchanged, on every adapter, in every format, wherever its plugin runs: an application cannot tell
/// where its records are.
@Suite(.daemon(StorageMatrix.configuration)) struct StorageMatrixTests {
    @Test(arguments: StorageMatrix.cells)
    func recordsAreCreatedReadUpdatedAndDeleted(cell: StorageMatrix.Cell) throws {
        try StorageProgram(connection: Daemon.shared.connect(), collection: cell.collection).run()
    }

    /// What the other tests try where a backend declares that it can.
    @Test(arguments: StorageMatrix.cells)
    func backendsHaveTheirCapabilities(cell: StorageMatrix.Cell) throws {
        let params = #"{"collection":"\#(cell.collection)"}"#
        let description = try Daemon.shared.connect().call("collection.describe", params).result
        let capabilities = try #require(description?["capabilities"]?.elements).compactMap(\.string)
        // Another process cannot reply to a read as fast as code in the daemon.
        let missing: Set = cell.isolation == "process" ? ["fastReads"] : []
        #expect(Set(capabilities) == cell.adapter.capabilities.subtracting(missing))
    }

    @Test(arguments: StorageMatrix.cells)
    func oddNamesAndLongItemsAreKept(cell: StorageMatrix.Cell) throws {
        let connection = try Daemon.shared.connect()
        let collection = cell.collection + " odd"
        let ids = [
            "../../etc/passwd", "a/b", "a", "A", ".", "..", "-", " ", "%", "%2F", "é", "e\u{301}", "😀", "'; --", "\"",
            "\\",
            "*", "?", "item_a.json", ".lock", String(repeating: "x", count: 512), String(repeating: "é", count: 256),
            "\u{10FFFF}", "null",
        ]
        let created = try connection.pipeline(
            ids.enumerated().map { ("record.create", Connection.params(collection, $1, item: "\($0)")) })
        for (id, reply) in zip(ids, created) { #expect(reply.result != nil, "\(id)") }
        let found = try connection.pipeline(ids.map { ("record.read", Connection.params(collection, $0)) })
        for (number, reply) in found.enumerated() {
            #expect(reply.result?["item"]?.text == "\(number)", "\(ids[number])")
        }
        let long = #"{"text":""# + String(repeating: "0123456789abcdé ", count: 1 << 16) + #""}"#
        #expect(try connection.create(collection, "long", long).result != nil)
        #expect(try connection.item(collection, "long") == long)
        let description = try connection.call("collection.describe", #"{"collection":\#(JSON.quote(collection))}"#)
        #expect(description.result?["count"]?.integer == ids.count + 1)
    }

    @Test(arguments: StorageMatrix.cells)
    func ordinaryItemsComeBackEqual(cell: StorageMatrix.Cell) throws {
        let connection = try Daemon.shared.connect()
        let collection = cell.collection + " items"
        let items = StorageProgram.items
        let written = try connection.pipeline(
            items.enumerated().map { ("record.upsert", Connection.params(collection, "\($0)", item: $1)) })
        for (item, reply) in zip(items, written) { #expect(reply.result != nil, "\(item)") }
        let read = try connection.pipeline(
            items.indices.map { ("record.read", Connection.params(collection, "\($0)")) })
        for (item, reply) in zip(items, read) {
            let back = reply.result?["item"]
            #expect(try back?.means(JSON(parsing: item)) == true, "\(item) came back as \(back?.text ?? "nothing")")
        }
    }

    /// The same on every adapter; what a property list cannot represent is refused as it is of any item.
    @Test(arguments: StorageMatrix.cells)
    func fieldOperationsAreApplied(cell: StorageMatrix.Cell) throws {
        let connection = try Daemon.shared.connect()
        let collection = cell.collection + " operations"
        func change(_ members: [String: String]) throws -> Reply { try connection.change(collection, "a", members) }
        let created = try change([
            "upsert": "true", "increment": #"{"n":9223372036854775807,"d":0.1,"a.b":-1}"#, "append": #"{"l":[1,"x"]}"#,
        ])
        let first = try #require(created.result)
        #expect(first["item"]?.members?.map(\.name).sorted() == ["a", "d", "l", "n"])
        for _ in 0..<2 { #expect(try change(["increment": #"{"d":0.1}"#]).result != nil) }
        let counted = try change([
            "increment": #"{"n":1,"a.b":1.5}"#, "minimum": #"{"d":2}"#, "maximum": #"{"m":7}"#,
            "add": #"{"l":["x",1.0,2]}"#, "remove": #"{"k":[1]}"#,
        ])
        let expected = #"{"n":9223372036854775808,"d":0.3,"a":{"b":0.5},"l":[1,"x",2],"m":7,"k":[]}"#
        let item = try #require(counted.result?["item"], "\(counted)")
        #expect(try item.means(JSON(parsing: expected)), "\(item.text)")
        #expect(try connection.read(collection, "a").result?["item"]?.means(item) == true)
        #expect(try change(["increment": #"{"n":1,"l":1}"#]).error?.details?["path"]?.string == "l")
        let tooBig = try change(["increment": #"{"n":9223372036854775808}"#])
        let tooExact = try change(["increment": #"{"d":0.000000000000000000001}"#])
        for (reply, path) in [(tooBig, "n"), (tooExact, "d")] {
            guard cell.format != "json" else {
                #expect(reply.result != nil)
                continue
            }
            #expect(reply.error?.name == "unsupported")
            #expect(reply.error?.details?["path"]?.string == path)
            #expect(try connection.read(collection, "a").result?["item"]?.means(item) == true)
        }
    }

    @Test(arguments: StorageMatrix.cells)
    func writesOfOneConnectionAreInOrder(cell: StorageMatrix.Cell) throws {
        let connection = try Daemon.shared.connect()
        let collection = cell.collection + " order"
        var requests: [(method: String, params: String)] = []
        for number in 0..<50 {
            requests.append(("record.upsert", Connection.params(collection, "a", item: "\(number)")))
            requests.append(("record.read", Connection.params(collection, "a")))
        }
        let replies = try connection.pipeline(requests)
        for number in 0..<50 { #expect(replies[2 * number + 1].result?["item"]?.text == "\(number)") }
    }
}

/// As long as an item may be, and of the kinds that take the most room in a property list.
@Suite(.daemon(StorageMatrix.tightConfiguration)) struct StorageMatrixLimitTests {
    @Test(arguments: StorageMatrix.cells)
    func theLongestItemsComeBack(cell: StorageMatrix.Cell) throws {
        let connection = try Daemon.shared.connect()
        let lists = ["1", "[]", "[[[]]]", "\"\""].map { element in
            let count = (32 << 10) / (element.utf8.count + 1) - 1
            return "[" + String(repeating: element + ",", count: count - 1) + element + "]"
        }
        let texts = ["é", "&", "\\\""].map { character in
            "\"" + String(repeating: character, count: (32 << 10) / character.utf8.count - 2) + "\""
        }
        for (number, item) in (lists + texts).enumerated() {
            #expect(try connection.create(cell.collection, "\(number)", item).result != nil, "\(number)")
            #expect(try connection.item(cell.collection, "\(number)") == item, "\(number)")
        }
        let tooLong = try connection.create(
            cell.collection, "more", "\"" + String(repeating: "x", count: 32 << 10) + "\"")
        #expect(tooLong.error?.details?["limit"]?.string == "item_bytes")
        let tooMany = try connection.readMany(cell.collection, (0..<7).map(String.init))
        #expect(tooMany.error?.details?["limit"]?.string == "frame_bytes", "\(tooMany)")
    }
}

/// What an adapter keeps when the daemon goes.
@Suite struct StorageMatrixDurabilityTests {
    @Test(arguments: [false, true])
    func whatWasAcknowledgedIsThereAgain(isKilled: Bool) throws {
        var daemon = try Daemon(StorageMatrix.configuration)
        var connection = try daemon.connect()
        var revisions: [String: String] = [:]
        for cell in StorageMatrix.cells {
            for number in 0..<20 {
                let item = #"{"number":\#(number)}"#
                let reply = try connection.create(cell.collection, "\(number)", item)
                revisions["\(cell)/\(number)"] = try #require(reply.result?["revision"]?.string, "\(cell)")
            }
            #expect(try connection.update(cell.collection, "0", #"{"number":"changed"}"#).result != nil)
            #expect(try connection.delete(cell.collection, "1").result != nil)
        }
        if isKilled { try daemon.kill() } else { #expect(try daemon.stop() == .exited(0), "\(daemon.log)") }
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        for cell in StorageMatrix.cells {
            #expect(try connection.exists(cell.collection, "1") == false, "\(cell)")
            guard cell.adapter.isDurable else {
                #expect(try connection.exists(cell.collection, "0") == false, "\(cell)")
                continue
            }
            #expect(try connection.item(cell.collection, "0") == #"{"number":"changed"}"#, "\(cell)")
            for number in 2..<20 {
                let record = try connection.read(cell.collection, "\(number)").result
                #expect(record?["item"]?.text == #"{"number":\#(number)}"#, "\(cell)")
                #expect(record?["revision"]?.string == revisions["\(cell)/\(number)"], "\(cell)")
            }
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}

/// Every adapter, the examples included, in every format, wherever its plugin may run.
enum StorageMatrix {
    struct Adapter: Sendable {
        let name: String
        /// Where its code may run.
        var isolations = ["inline", "process"]
        /// What a backend of it is, as YAML; `$PLACE` stands for a name of its own.
        let definition: String
        let capabilities: Set<String>

        /// Whether records outlive the daemon.
        var isDurable: Bool { capabilities.contains("durable") }
    }

    struct Cell: Sendable, CustomStringConvertible, CustomTestStringConvertible {
        let adapter: Adapter
        let isolation: String
        let format: String

        var backend: String { "\(adapter.name)-\(isolation)" }
        var collection: String { "\(backend)-\(format)" }
        var description: String { collection }
        var testDescription: String { collection }
    }

    private static let adapters = [
        Adapter(
            name: "sqlite", definition: "plugin: sqlite, options: {path: $DIRECTORY/$PLACE.sqlite}",
            capabilities: [
                "concurrentReads", "fastReads", "transactions", "durable", "indexes", "sequences", "expiry",
                "takesHistory",
            ]),
        Adapter(
            name: "filesystem", definition: "plugin: filesystem, options: {directory: $DIRECTORY/$PLACE}",
            capabilities: ["concurrentReads", "durable", "expiry"]),
        Adapter(
            name: "userdefaults", definition: "plugin: userdefaults, options: {suite: $PLACE}",
            capabilities: ["transactions", "durable", "expiry"]),
        Adapter(
            name: "memory", definition: "plugin: memory",
            capabilities: [
                "concurrentReads", "fastReads", "transactions", "indexes", "sequences", "expiry", "takesHistory",
            ]),
        Adapter(
            name: "log", definition: "plugin: memory, options: {log: $DIRECTORY/$PLACE}",
            capabilities: [
                "concurrentReads", "fastReads", "transactions", "durable", "indexes", "sequences", "expiry",
                "takesHistory",
            ]),
        Adapter(
            name: "postgresql", definition: "plugin: postgresql, options: \(PostgreSQLServer.options("$PLACE"))",
            capabilities: [
                "concurrentReads", "transactions", "durable", "indexes", "sequences", "expiry", "takesHistory",
            ]),
        // The examples: a shared object in C, and a program in Python, which is a child always.
        Adapter(name: "c", definition: "plugin: example", capabilities: ["indexes", "sequences", "expiry"]),
        Adapter(
            name: "python", isolations: ["process"],
            definition: "command: [$DIRECTORY/store.py], options: {path: $DIRECTORY/$PLACE.db}",
            capabilities: ["transactions", "durable", "sequences", "expiry"]),
    ]
    private static let formats = ["json", "xml", "plist"]

    static let cells = adapters.flatMap { adapter in
        adapter.isolations.flatMap { isolation in
            formats.map { Cell(adapter: adapter, isolation: isolation, format: $0) }
        }
    }

    /// One backend for each adapter and isolation, one collection and those beside it for each cell.
    static let configuration = Configuration(
        backends: cells.filter { $0.format == "json" }.map { cell in
            let definition = cell.adapter.definition.replacing("$PLACE", with: cell.backend)
            return "\(cell.backend): {isolation: \(cell.isolation), \(definition)}"
        }.joined(separator: "\n"),
        collections: cells.map { "\"\($0.collection)*\": {backend: \($0.backend), format: \($0.format)}" }
            .joined(separator: "\n"))

    /// The same with the smallest frames.
    static let tightConfiguration: Configuration = {
        var tight = configuration
        tight.limits = "frame_bytes: 64KiB\nitem_bytes: 32KiB"
        return tight
    }()
}
