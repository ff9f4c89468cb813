import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// Schemas of version 1, which remember no removals.
@Suite struct UpgradeTests {
    private let server: PostgreSQLServer

    init() throws {
        server = try PostgreSQLServer.shared()
    }

    private func open(_ schema: String) throws -> PluginBackend {
        try PluginBackend.open(server.connection, schema: schema)
    }

    /// What version 1 made, with a collection that keeps sequence numbers and has an index, and one that has neither.
    private func makeVersion1(_ schema: String, _ additional: String = "") throws {
        let script = """
            CREATE SCHEMA s;
            CREATE TABLE s.crudd_schema (version bigint PRIMARY KEY);
            CREATE TABLE s.crudd_lease (number bigint PRIMARY KEY, holder text, place text, fence bigint NOT NULL,
                expires_at timestamptz, sequence_ceiling bigint NOT NULL);
            CREATE TABLE s.crudd_collections (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL,
                format text NOT NULL, table_name text COLLATE "C" NOT NULL UNIQUE, UNIQUE (name, format));
            CREATE TABLE s.crudd_indexes (number bigint PRIMARY KEY, collection bigint NOT NULL,
                path text COLLATE "C" NOT NULL, UNIQUE (collection, path));
            INSERT INTO s.crudd_lease (number, fence, sequence_ceiling) VALUES (1, 3, 1000);
            INSERT INTO s.crudd_schema (version) VALUES (1);
            INSERT INTO s.crudd_collections VALUES (1, 'clients', 'json', 'clients'), (2, 'boxes', 'plist', 'boxes');
            CREATE TABLE s.clients (id text COLLATE "C" CONSTRAINT crudd_1_id PRIMARY KEY,
                revision text NOT NULL DEFAULT CAST(gen_random_uuid() AS text), expires_at bigint, sequence bigint,
                item json NOT NULL);
            CREATE INDEX crudd_1_expiry ON s.clients (expires_at, id) WHERE expires_at IS NOT NULL;
            INSERT INTO s.crudd_indexes VALUES (1, 1, 'name');
            ALTER TABLE s.clients ADD COLUMN crudd_key_1 bytea NOT NULL DEFAULT '';
            CREATE INDEX crudd_index_1 ON s.clients (crudd_key_1, id);
            CREATE INDEX crudd_1_sequence ON s.clients (sequence) WHERE sequence IS NOT NULL;
            CREATE TABLE s.boxes (id text COLLATE "C" CONSTRAINT crudd_2_id PRIMARY KEY,
                revision text NOT NULL DEFAULT CAST(gen_random_uuid() AS text), expires_at bigint, sequence bigint,
                item bytea NOT NULL);
            CREATE INDEX crudd_2_expiry ON s.boxes (expires_at, id) WHERE expires_at IS NOT NULL;
            INSERT INTO s.clients VALUES ('a', '11', NULL, 7, '{"name": "Ada" }', '\\x01'),
                ('b', '12', 4102444800000, 9, '{"name": "Bob"}', '\\x02');
            INSERT INTO s.clients (id, item) VALUES ('hand', '3');
            INSERT INTO s.boxes VALUES ('a', '13', NULL, 8, '\\x0102');
            \(additional)
            """
        let named = script.replacing(" s.", with: " \(schema).").replacing("SCHEMA s;", with: "SCHEMA \(schema);")
        #expect(try server.query(named) != nil)
    }

    @Test func keepTheirRecordsAndRememberRemovalsFromNowOn() throws {
        try makeVersion1("old")
        do {
            let backend = try open("old")
            #expect(try backend.collections() == ["boxes", "clients"])
            let clients = try backend.open("clients", indexes: ["name"], creates: false, hasSequences: true)
            let reader = try backend.reader()
            let bob = PluginRecord(
                "b", bytes: Array(#"{"name": "Bob"}"#.utf8), revision: "12", expiresAt: 4_102_444_800_000)
            #expect(try reader.read("a", in: clients) == PluginRecord("a", #"{"name": "Ada" }"#, revision: "11"))
            #expect(try reader.read("b", in: clients) == bob)
            #expect(try reader.scan(clients, PluginRange(.key(index: 0), lower: [2])).map(\.id) == ["b"])
            #expect(try reader.scan(clients, .sequences()).map(\.sequence) == [7, 9])
            #expect(try reader.scan(clients, PluginRange(.unsequenced)).map(\.id) == ["hand"])
            let boxes = try backend.open("boxes", format: "plist", creates: false)
            #expect(try reader.read("a", in: boxes)?.bytes == [1, 2])

            let first = max(backend.highestSequence, backend.storedLastSequence)
            #expect(first >= 9)
            let write: [PluginMutation] = [
                .put(PluginRecord("c", "4", revision: "14"), keys: [[3]], if: .absent, in: clients),
                .put(PluginRecord("a", "5", revision: "15"), keys: [[4]], if: .revision("11"), in: clients),
                .remove("b", in: clients),
            ]
            #expect(try backend.write(write) == [.created, .replaced, .removed])
            reader.endSnapshot()
            let feed = try reader.scan(clients, .sequences())
            #expect(feed.map(\.id) == ["c", "a", "b"] && feed.map(\.isRemoved) == [false, false, true])
            #expect(try backend.history(of: clients).identity != 0)
        }
        #expect(try server.query("SELECT version FROM old.crudd_schema") == "3")
        let again = try open("old")
        let clients = try again.open("clients", indexes: ["name"], creates: false, hasSequences: true)
        #expect(try again.reader().scan(clients).map(\.id) == ["a", "c", "hand"])
    }

    /// Upgrade and version are one transaction.
    @Test func areLeftAsTheyWereWhenThatFails() throws {
        try makeVersion1("stuck", "CREATE TABLE s.crudd_history (other text);")
        let error = #expect(throws: CallError.self) { try open("stuck") }
        #expect(error?.message.contains("stuck") == true, "\(error.map { "\($0)" } ?? "")")
        #expect(try server.query("SELECT version FROM stuck.crudd_schema") == "1")
        #expect(try server.query("DROP TABLE stuck.crudd_history") != nil)
        let backend = try open("stuck")
        let clients = try backend.open("clients", indexes: ["name"], creates: false, hasSequences: true)
        #expect(try backend.reader().count(clients) == 3)
    }
}
