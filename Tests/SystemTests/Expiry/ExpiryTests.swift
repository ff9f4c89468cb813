import CRUDTestSupport
import Glibc
import Testing

/// Records that expire, wherever they are stored: `ttl`, `expiresAt`, and that nobody sees them from that instant on.
@Suite(.daemon(StorageMatrix.configuration, loops: [2])) struct ExpiryTests {
    private static let cells = StorageMatrix.cells.filter { cell in
        cell.format == "json" || cell.isolation == "inline" && ["sqlite", "filesystem"].contains(cell.adapter.name)
    }

    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }

    private static func connect() throws -> Connection { try Daemon.shared(loops: 2).connect() }

    /// The parameters of a write, with further members.
    private static func params(_ collection: String, _ id: String, _ item: String?, _ more: String) -> String {
        let item = item.map { #","item":\#($0)"# } ?? ""
        return #"{"collection":\#(JSON.quote(collection)),"id":"\#(id)"\#(item),\#(more)}"#
    }

    private static func expiry(_ connection: Connection, _ collection: String, _ id: String) throws -> Int? {
        try connection.read(collection, id).result?["expiresAt"]?.integer
    }

    @Test(arguments: cells)
    func writesSetKeepAndRemoveIt(cell: StorageMatrix.Cell) throws {
        let connection = try Self.connect()
        let collection = cell.collection + " ttl"
        let before = Self.now()
        let created = try connection.call("record.create", Self.params(collection, "a", "{}", #""ttl":1000.5"#))
        try #require(created.result != nil, "\(created)")
        let after = Self.now()
        let expiry = try #require(try Self.expiry(connection, collection, "a"))
        #expect(expiry >= before + 1000_500 && expiry <= after + 1000_500)
        // As another connection sees it, and a query.
        let other = try Self.connect()
        #expect(try Self.expiry(other, collection, "a") == expiry)
        let page = try other.call("record.query", #"{"collection":\#(JSON.quote(collection))}"#)
        #expect(page.result?["records"]?.elements?.first?["expiresAt"]?.integer == expiry)
        #expect(try other.readMany(collection, ["a"]).result?["records"]?.elements?[0]["expiresAt"]?.integer == expiry)
        // A patch leaves it, sets it, removes it.
        func patch(_ more: String) throws -> Reply {
            try connection.call("record.patch", Self.params(collection, "a", nil, #""patch":{"b":1}\#(more)"#))
        }
        #expect(try patch("").result != nil)
        #expect(try Self.expiry(other, collection, "a") == expiry)
        #expect(try patch(#","ttl":5000"#).result != nil)
        #expect(try Self.expiry(other, collection, "a") ?? 0 > expiry)
        #expect(try patch(#","ttl":null"#).result != nil)
        #expect(try other.read(collection, "a").result?["expiresAt"] == nil)
        // An update and an upsert without it remove it.
        for method in ["record.update", "record.upsert"] {
            #expect(try connection.call(method, Self.params(collection, "a", "{}", #""ttl":500"#)).result != nil)
            #expect(try Self.expiry(other, collection, "a") != nil)
            #expect(try connection.call(method, Connection.params(collection, "a", item: "{}")).result != nil)
            #expect(try Self.expiry(other, collection, "a") == nil)
        }
        // A long item, which is encoded on another thread.
        let long = #"{"text":""# + String(repeating: "x", count: 100_000) + #""}"#
        #expect(try connection.call("record.upsert", Self.params(collection, "a", long, #""ttl":700"#)).result != nil)
        #expect(try Self.expiry(other, collection, "a") != nil)
        #expect(try connection.upsert(collection, "a", long).result != nil)
        #expect(try Self.expiry(other, collection, "a") == nil)
    }

    /// `record.touch` leaves the item, and its index keys, as they are.
    @Test(arguments: cells)
    func touchChangesNothingElse(cell: StorageMatrix.Cell) throws {
        let (connection, other) = (try Self.connect(), try Self.connect())
        let collection = cell.collection + " touched"
        func touch(_ id: String, _ more: String) throws -> Reply {
            try connection.call("record.touch", Self.params(collection, id, nil, more))
        }
        let item = #"{"n":1,"text":"\#(String(repeating: "x", count: 70_000))"}"#
        let created = try #require(try connection.create(collection, "a", item).result?["revision"]?.string)
        let stored = try other.read(collection, "a").result?["item"]?.text
        let touched = try touch("a", #""ttl":1000,"ifRevision":"\#(created)""#)
        let revision = try #require(touched.result?["revision"]?.string, "\(touched)")
        #expect(touched.result?.text == #"{"revision":"\#(revision)"}"#)
        #expect(revision != created)
        #expect(try Self.expiry(other, collection, "a") ?? 0 > Self.now() + 50_000)
        #expect(try touch("a", #""expiresAt":253402300799999"#).result != nil)
        #expect(try Self.expiry(other, collection, "a") == 253_402_300_799_999)
        let stale = try touch("a", #""ttl":null,"ifRevision":"\#(revision)""#)
        #expect(stale.error?.name == "revision_mismatch")
        #expect(try touch("a", #""ttl":null"#).result != nil)
        #expect(try Self.expiry(other, collection, "a") == nil)
        #expect(try other.read(collection, "a").result?["item"]?.text == stored)
        let filter = #"{"op":"=","args":[{"property":"n"},1]}"#
        let found = try other.call(
            "record.query", #"{"collection":\#(JSON.quote(collection)),"filter":\#(filter),"fields":[]}"#)
        #expect(found.result?["records"]?.elements?.count == 1)
        #expect(try touch("b", #""ttl":1"#).error?.name == "record_not_found")
        let neither = try touch("a", #""ifRevision":"x""#)
        #expect(neither.error?.name == "invalid_params")
        let operation = #"{"op":"touch","collection":\#(JSON.quote(collection)),"id":"a","ttl":200}"#
        for atomic in cell.adapter.capabilities.contains("transactions") ? [false, true] : [false] {
            let batch = try connection.call("record.batch", #"{"operations":[\#(operation)],"atomic":\#(atomic)}"#)
            #expect(batch.result?["results"]?.elements?.first?["result"]?["revision"] != nil, "\(batch)")
        }
        #expect(try Self.expiry(other, collection, "a") ?? 0 > Self.now() + 100_000)
        #expect(try touch("a", #""expiresAt":1"#).result != nil)
        #expect(try other.exists(collection, "a") == false)
    }

    @Test(arguments: cells)
    func fromItsInstantOnItIsNotThere(cell: StorageMatrix.Cell) throws {
        let (connection, reader) = (try Self.connect(), try Self.connect())
        let collection = cell.collection + " hidden"
        let name = JSON.quote(collection)
        #expect(try connection.create(collection, "stays", #"{"n":1}"#).result != nil)
        let ids = ["a", "b", "c", "d", "e"]
        var expiries: [Int] = []
        // A busy machine may need longer to create them than they last.
        for ttl in ["0.4", "4", "40"] where expiries.count < ids.count {
            for id in ids {
                let params = Self.params(collection, id, #"{"n":1}"#, #""ttl":\#(ttl)"#)
                let reply = try connection.call("record.upsert", params)
                try #require(reply.result != nil, "\(reply)")
            }
            expiries = try ids.compactMap { try Self.expiry(reader, collection, $0) }
        }
        try #require(expiries.count == ids.count)
        // Around the instant: whatever is read was asked for before it.
        while true {
            let asked = Self.now()
            let isThere = try reader.read(collection, "a").result != nil
            if asked >= expiries[0] { #expect(!isThere, "\(asked - expiries[0]) ms") }
            if !isThere {
                #expect(Self.now() >= expiries[0])
                if asked >= expiries[4] { break }
            }
        }
        #expect(try reader.exists(collection, "b") == false)
        #expect(try reader.readMany(collection, ["b", "stays"]).result?["missing"]?.text == #"["b"]"#)
        #expect(try reader.call("record.count", #"{"collection":\#(name)}"#).result?["count"]?.integer == 1)
        let filter = #"{"op":"=","args":[{"property":"n"},1]}"#
        let found = try reader.call("record.query", #"{"collection":\#(name),"filter":\#(filter)}"#)
        #expect(found.result?["records"]?.elements?.compactMap { $0["id"]?.string } == ["stays"])
        #expect(try connection.update(collection, "b", "{}").error?.name == "record_not_found")
        #expect(try connection.delete(collection, "c").error?.name == "record_not_found")
        let patch = try connection.call("record.patch", Self.params(collection, "d", nil, #""patch":{"m":2}"#))
        #expect(patch.error?.name == "record_not_found")
        let upsert = try connection.call(
            "record.patch", Self.params(collection, "d", nil, #""patch":{"m":2},"upsert":true"#))
        #expect(upsert.result?["item"]?.text == #"{"m":2}"#)
        #expect(try Self.expiry(connection, collection, "d") == nil)
        #expect(try connection.create(collection, "e", "{}").result != nil)
        let deleted = try connection.call("record.deleteMatching", #"{"collection":\#(name),"all":true}"#)
        #expect(deleted.result?["deleted"]?.integer == 3)
    }

    /// To the millisecond, by every method, and in the past too.
    @Test(arguments: cells)
    func anInstantIsKeptAsItIs(cell: StorageMatrix.Cell) throws {
        let (connection, other) = (try Self.connect(), try Self.connect())
        let collection = cell.collection + " at"
        var instant = Self.now() + 1_000_000
        for method in ["record.create", "record.update", "record.upsert"] {
            instant += 1
            let params = Self.params(collection, "a", "{}", #""expiresAt":\#(instant)"#)
            #expect(try connection.call(method, params).result != nil)
            #expect(try Self.expiry(other, collection, "a") == instant, "\(method)")
        }
        let patch = #""patch":{"b":1},"expiresAt":253402300799999"#
        #expect(try connection.call("record.patch", Self.params(collection, "a", nil, patch)).result != nil)
        #expect(try Self.expiry(other, collection, "a") == 253_402_300_799_999)
        for (method, id, value) in [
            ("record.create", "b", #""item":{}"#), ("record.upsert", "c", #""item":{}"#),
            ("record.patch", "d", #""patch":{},"upsert":true"#), ("record.update", "a", #""item":{}"#),
        ] {
            let passed = #"\#(value),"expiresAt":1"#
            let reply = try connection.call(method, Self.params(collection, id, nil, passed))
            #expect(reply.result?["revision"] != nil, "\(reply)")
            #expect(try connection.exists(collection, id) == false, "\(method)")
            #expect(try other.exists(collection, id) == false, "\(method)")
        }
        #expect(try other.query(collection, "{}").result?.text == #"{"records":[]}"#)
        #expect(try connection.create(collection, "a", "{}").result != nil)
        let name = JSON.quote(collection)
        let operations = [
            #"{"op":"create","collection":\#(name),"id":"e","item":1,"expiresAt":\#(instant)}"#,
            #"{"op":"create","collection":\#(name),"id":"f","item":1,"expiresAt":1}"#,
            #"{"op":"create","collection":\#(name),"id":"f","item":2}"#,
        ]
        let batch = try connection.call("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
        #expect(batch.result?["results"]?.elements?.allSatisfy { $0["result"] != nil } == true, "\(batch)")
        #expect(try Self.expiry(other, collection, "e") == instant)
        #expect(try other.read(collection, "f").result?["item"]?.text == "2")
    }

    @Test(arguments: [
        #""expiresAt":0"#, #""expiresAt":-1"#, #""expiresAt":253402300800000"#, #""expiresAt":1.5"#,
        #""expiresAt":1e3"#, #""expiresAt":"1""#, #""expiresAt":null"#, #""expiresAt":99999999999999999999"#,
        #""expiresAt":1,"ttl":1"#,
    ])
    func whatIsNoInstantIsRefused(members: String) throws {
        let connection = try Self.connect()
        let methods = ["create", "update", "upsert", "patch"]
        for method in methods {
            let value = method == "patch" ? #""patch":{}"# : #""item":1"#
            let params = Self.params("memory-inline-json", "a", nil, "\(value),\(members)")
            let error = try connection.call("record.\(method)", params).error
            #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "expiresAt", "\(method)")
            let operation = #"{"op":"\#(method)","# + params.dropFirst()
            let batch = try connection.call("record.batch", #"{"operations":[\#(operation)]}"#).error
            #expect(batch?.name == "invalid_params" && batch?.details?["index"]?.integer == 0, "\(method)")
        }
    }

    @Test(arguments: ["0", "-1", "3155760001", #""1""#, "true", "{}", "null", "1e400"])
    func whatIsNoTimeIsRefused(ttl: String) throws {
        let connection = try Self.connect()
        for method in ["record.create", "record.update", "record.upsert", "record.patch"] {
            let isPatch = method == "record.patch"
            if isPatch, ttl == "null" { continue }
            let params = Self.params(
                "memory-inline-json", "a", isPatch ? nil : "1", #""ttl":\#(ttl)"# + (isPatch ? #","patch":{}"# : ""))
            let error = try connection.call(method, params).error
            #expect(error?.name == "invalid_params" && error?.details?["member"]?.string == "ttl", "\(method)")
        }
        let batch = try connection.call(
            "record.batch",
            #"{"operations":[{"op":"create","collection":"memory-inline-json","id":"a","item":1,"ttl":\#(ttl)}]}"#)
        #expect(batch.error?.name == "invalid_params" && batch.error?.details?["index"]?.integer == 0)
    }

    /// A program that does not declare the capability.
    @Test func whereRecordsDoNotExpireItIsRefused() throws {
        let installation = try Installation(
            Configuration(
                backends: "main: {command: [$DIRECTORY/store.py], options: {path: $DIRECTORY/main.db}}",
                collections: "c: {backend: main}"))
        let program = "\(installation.path)/store.py"
        let text = String(decoding: try Files.read(program), as: UTF8.self)
        try Files.write(text.replacing(#", "expiry"]"#, with: "]"), to: program, mode: 0o755)
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        for (method, item, more) in [
            ("record.create", "{}", #""ttl":1"#), ("record.patch", nil, #""ttl":null,"upsert":true,"patch":{}"#),
        ] {
            let reply = try connection.call(method, Self.params("c", "a", item, more))
            #expect(reply.error?.name == "unsupported", "\(reply)")
        }
        #expect(try connection.exists("c", "a") == false)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func operationsOfABatchHaveIt() throws {
        let connection = try Self.connect()
        let collection = "sqlite-inline-json batch"
        let operations = ["create", "upsert"].map {
            #"{"op":"\#($0)","collection":"\#(collection)","id":"\#($0)","item":{},"ttl":60}"#
        }
        for isAtomic in [true, false] {
            let reply = try connection.call(
                "record.batch", #"{"atomic":\#(isAtomic),"operations":[\#(operations.joined(separator: ","))]}"#)
            if isAtomic { #expect(reply.result != nil, "\(reply)") }
            let times = try ["create", "upsert"].map { try Self.expiry(connection, collection, $0) }
            // By one clock. Where the create was refused, the upsert was later.
            if isAtomic { #expect(times[0] != nil && times[0] == times[1]) }
        }
    }
}

/// What has expired is deleted soon, whoever looks.
@Suite struct ExpiryRemovalTests {
    private static let configuration = Configuration(
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            kid: {plugin: memory, isolation: process}
            """,
        collections: "c: {backend: main, changes: true}\nd: {backend: kid, changes: true}\ne: {backend: main}")

    /// Batches of a thousand records that expire at once, with other clients at work beside.
    @Test(arguments: ["c", "d"])
    func manyAtOnce(collection: String) throws {
        let daemon = try Daemon(Self.configuration)
        let (connection, follower) = (try daemon.connect(), try daemon.connect())
        #expect(try connection.create(collection, "stays", "0").result != nil)
        for batch in 0..<MovePlaces.number("CRUDD_EXPIRING_BATCHES", default: 10) {
            let operations = (0..<1000).map {
                #"{"op":"create","collection":"\#(collection)","id":"\#(batch) \#($0)","item":\#($0),"ttl":0.3}"#
            }
            let reply = try connection.call(
                "record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
            try #require(reply.result != nil, "\(reply)")
        }
        // The feed tells of every one.
        var live: Set<String> = []
        var cursor = "start"
        let deadline = Deadline()
        repeat {
            let page = try follower.changes(collection, after: cursor, #""wait":1,"items":false,"limit":10000"#)
            for change in page.changes {
                let id = try #require(change["id"]?.string)
                if change["deleted"] != nil { live.remove(id) } else { live.insert(id) }
            }
            cursor = page.cursor
            #expect(try connection.item(collection, "stays") == "0")
            #expect(try connection.upsert("e", "a", "1").result != nil)
            try #require(!deadline.hasPassed, "\(live.count) are left")
        } while live != ["stays"]
        #expect(try daemon.stop() == .exited(0))
        guard collection == "c" else { return }
        // In steps, each by one clock, between which others are served.
        let steps = "(select count(*) as size from crudd_removed_1 group by removed_at)"
        let largest = try Self.number("max(size) from \(steps)", in: "\(daemon.installation.path)/main.sqlite")
        #expect(largest ?? .max <= 1000)
    }

    /// Nobody uses the collection after the start.
    @Test func alsoWhereNobodyLooks() throws {
        var daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let params = #"{"collection":"e","id":"a","item":1,"ttl":0.2}"#
        #expect(try connection.call("record.create", params).result != nil)
        try daemon.kill()
        daemon = try daemon.restarted()
        let database = "\(daemon.installation.path)/main.sqlite"
        let deadline = Deadline()
        while try Self.rows(of: "e", in: database) != 0 { try #require(!deadline.hasPassed) }
        #expect(try daemon.stop() == .exited(0))
    }

    /// How many rows the table of a collection has, those of records that have expired among them.
    static func rows(of table: String, in database: String) throws -> Int? {
        try number("count(*) from \(table)", in: database)
    }

    /// What a query of a database finds.
    private static func number(_ query: String, in database: String) throws -> Int? {
        let script = """
            import sqlite3
            connection = sqlite3.connect("file:\(database)?mode=ro", uri=True)
            print(connection.execute("select \(query)").fetchone()[0])
            """
        return Int(try Command.run("python3", ["-c", script]).output.dropLast())
    }
}
