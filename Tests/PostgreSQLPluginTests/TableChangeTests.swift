import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// Tables that are changed while they are used: columns, indexes, what is remembered of changes.
@Suite struct TableChangeTests {
    private let server: PostgreSQLServer

    init() throws {
        // A session with an old snapshot anywhere blocks an index.
        server = try PostgreSQLServer()
    }

    private func open() throws -> PluginBackend {
        try PluginBackend.open(server.connection, schema: "crudd")
    }

    /// A collection of some megabytes.
    private func makeLargeCollection(_ backend: PluginBackend) throws -> PluginCollection {
        let collection = try backend.open("large")
        let rows = "SELECT 'r' || n, to_json(repeat('x', 500)) FROM generate_series(1, 10000) AS n"
        #expect(try server.query("INSERT INTO crudd.large (id, item) \(rows)") != nil)
        return collection
    }

    /// A session of another program.
    private func session(_ sql: String) throws -> ChildProcess {
        let process = try ChildProcess(
            "psql", ["-X", "-q", "-d", server.connection, "-c", "\(sql); SELECT pg_sleep(600)"], descriptors: [])
        try wait("the session holds") {
            try server.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
        }
        return process
    }

    private func end(_ session: ChildProcess) throws {
        _ = try server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        try session.waitForExit()
    }

    private func wait(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = Deadline()
        while try !condition() {
            guard !deadline.hasPassed else { throw Failure(what) }
            poll(nil, 0, 20)
        }
    }

    /// Writes and reads until the lease has been renewed twice.
    private func use(_ backend: PluginBackend, _ collection: PluginCollection, _ keys: [[UInt8]]) throws {
        let other = try backend.open("other")
        let expiry = "SELECT expires_at FROM crudd.crudd_lease WHERE number = 1"
        for _ in 0..<2 {
            let renewed = try server.query(expiry)
            try wait("the lease is renewed") {
                #expect(try backend.write([.put("a", "1", in: other)]).count == 1)
                #expect(try backend.write([.put(PluginRecord("a", "1"), keys: keys, in: collection)]).count == 1)
                #expect(try backend.reader().read("a", in: collection)?.item == "1")
                return try server.query(expiry) != renewed
            }
        }
        #expect(backend.states.isEmpty, "\(backend.states)")
    }

    private func statusOfScan(_ backend: PluginBackend, _ collection: PluginCollection, _ range: PluginRange) -> Int {
        do {
            _ = try backend.reader().scan(collection, range)
            return CRUDD_OK
        } catch {
            return Int(error.status)
        }
    }

    /// A backup holds the table for as long as it lasts.
    @Test func tableThatIsHeldIsServed() throws {
        let backend = try open()
        _ = try makeLargeCollection(backend)
        let holder = try session("BEGIN; LOCK TABLE crudd.large IN ACCESS SHARE MODE")
        let collection = try backend.open("large", indexes: ["n"])
        try use(backend, collection, [[1]])
        #expect(statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_UNAVAILABLE)
        #expect(backend.logged.filter { $0.contains("cannot be changed yet") }.count == 1, "\(backend.logged)")
        try end(holder)
        try wait("the index is made") { statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_OK }
        #expect(try backend.write([.put(PluginRecord("b", "1"), keys: [[2]], in: collection)]) == [.created])
        #expect(try backend.reader().scan(collection, PluginRange(.key(index: 0))).map(\.id) == ["b"])
    }

    /// A session with an old snapshot blocks an index that is made beside others; what is interrupted is made again.
    @Test func indexIsMadeBesideReadsAndWrites() throws {
        let backend = try open()
        _ = try makeLargeCollection(backend)
        let holder = try session("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM crudd.crudd_collections")
        let collection = try backend.open("large", indexes: ["n"])
        let building = "FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active'"
        try wait("the index is being made") { try server.query("SELECT count(*) \(building)") == "1" }
        try use(backend, collection, [[1]])
        #expect(statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_UNAVAILABLE)
        _ = try server.query("SELECT pg_terminate_backend(pid) \(building)")
        try end(holder)
        try wait("the index is made") { statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_OK }
        #expect(try backend.reader().scan(collection, PluginRange(.key(index: 0))).map(\.id) == ["a"])
        let valid = "SELECT count(*) FROM pg_index WHERE indrelid = 'crudd.large'::regclass AND NOT indisvalid"
        #expect(try server.query(valid) == "0")
    }

    /// The server that the plugin is connected to has none of the rows, as where Citus has distributed the table.
    @Test func indexOfRowsElsewhereIsMadeBesideReadsAndWrites() throws {
        let backend = try open()
        _ = try backend.open("large")
        let shard = "CREATE TABLE public.large_102008 () INHERITS (crudd.large)"
        let rows = "SELECT 'r' || n, '1' FROM generate_series(1, 10000) AS n"
        #expect(try server.query("\(shard); INSERT INTO public.large_102008 (id, item) \(rows)") != nil)
        let holder = try session("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM crudd.crudd_collections")
        let collection = try backend.open("large", indexes: ["n"])
        let building = "FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active'"
        try wait("the index is being made") { try server.query("SELECT count(*) \(building)") == "1" }
        try use(backend, collection, [[1]])
        try end(holder)
        try wait("the index is made") { statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_OK }
    }

    @Test func changesAreRememberedBesideReadsAndWrites() throws {
        let backend = try open()
        _ = try makeLargeCollection(backend)
        let holder = try session("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM crudd.large")
        let collection = try backend.open("large", hasSequences: true)
        try use(backend, collection, [])
        #expect(try backend.write([.remove("r1", in: collection)]).count == 1)
        #expect(statusOfScan(backend, collection, PluginRange(.sequence)) == CRUDD_UNAVAILABLE)
        try end(holder)
        try wait("the indexes are made") { statusOfScan(backend, collection, PluginRange(.sequence)) == CRUDD_OK }
        #expect(try backend.reader().scan(collection, PluginRange(.sequence)).map(\.id) == ["a", "r1"])
    }

    /// A dropped collection does not wait for what is being made of it.
    @Test func collectionIsDroppedWhileItsIndexIsMade() throws {
        let backend = try open()
        _ = try makeLargeCollection(backend)
        let holder = try session("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM crudd.crudd_collections")
        _ = try backend.open("large", indexes: ["n"])
        let building = "FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active'"
        try wait("the index is being made") { try server.query("SELECT count(*) \(building)") == "1" }
        try backend.drop("large")
        #expect(try server.query("SELECT count(*) FROM pg_tables WHERE tablename = 'large'") == "0")
        try end(holder)
    }

    /// What the server refuses is said once, and tried again.
    @Test func refusedIndexLeavesTheCollectionServing() throws {
        let backend = try open()
        let refusal = """
            CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'cannot insert multiple commands' USING ERRCODE = '42601'; END $$;
            CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION refuse()
            """
        let collection = try backend.open("c")
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.created])
        #expect(try server.query(refusal) != nil)
        for _ in 0..<3 { _ = try backend.open("c", indexes: ["n"]) }
        #expect(try backend.write([.put(PluginRecord("b", "1"), keys: [[1]], in: collection)]) == [.created])
        #expect(try backend.reader().read("b", in: collection)?.item == "1")
        #expect(statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_UNAVAILABLE)
        let lines = backend.logged.filter { $0.contains("the table c cannot be changed yet") && $0.contains("42601") }
        #expect(lines.count == 1, "\(backend.logged)")
        #expect(try server.query("DROP EVENT TRIGGER refuse") != nil)
        try wait("the index is made") { statusOfScan(backend, collection, PluginRange(.key(index: 0))) == CRUDD_OK }
        #expect(try backend.reader().scan(collection, PluginRange(.key(index: 0))).map(\.id) == ["b"])
    }
}
