import CRUDPluginTesting
import CRUDTestSupport
import Testing

/// Files of version 1 of the schema.
@Suite struct UpgradeTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
    }

    private func makeVersion1(_ additional: String = "") throws {
        try Inspector(path).execute(
            """
            PRAGMA journal_mode = WAL;
            CREATE TABLE crudd_collections (
                number INTEGER PRIMARY KEY,
                name TEXT NOT NULL,
                format TEXT NOT NULL,
                table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
                UNIQUE (name, format)
            ) STRICT;
            PRAGMA application_id = \(0x6372_7564);
            PRAGMA user_version = 1;
            INSERT INTO crudd_collections VALUES (1, 'clients', 'json', 'clients'), (2, 'Clients', 'plist',
                'crudd_2_Clients'), (3, 'lost', 'json', 'lost');
            CREATE TABLE "clients" (
                id TEXT PRIMARY KEY NOT NULL,
                revision TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
                item TEXT NOT NULL
            ) STRICT;
            CREATE TABLE "crudd_2_Clients" (
                id TEXT PRIMARY KEY NOT NULL,
                revision TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
                item BLOB NOT NULL
            ) STRICT;
            CREATE INDEX "crudd_index_1_a" ON "clients" (json_type(item, '$.a'), item ->> '$.a', id);
            CREATE INDEX mine ON clients (revision);
            INSERT INTO clients VALUES ('a', 'ra', '{"a":1}'), ('b', 'rb', '{"a":2}');
            INSERT INTO crudd_2_Clients VALUES ('a', 'rc', x'01');
            \(additional)
            """)
    }

    @Test func keepTheirRecords() throws {
        try makeVersion1()
        do {
            let backend = try PluginBackend(path: path)
            backend.call.now = 1_000_000
            let clients = try backend.open("clients", indexes: ["a"], creates: false, hasSequences: true)
            let reader = try backend.reader()
            #expect(
                try reader.scan(clients)
                    == [PluginRecord("a", #"{"a":1}"#, revision: "ra"), PluginRecord("b", #"{"a":2}"#, revision: "rb")])
            #expect(try reader.scan(clients).map(\.sequence) == [0, 0])
            #expect(try reader.ids(clients, .unkeyed(0)) == ["a", "b"])
            let boxes = try backend.open("Clients", format: "plist", creates: false)
            #expect(try reader.read("a", in: boxes)?.bytes == [1])
            let outcomes = try backend.write([
                .put("a", "1", revision: "r1", expiresAt: 2_000_000, keys: ["k"], if: .revision("ra"), in: clients),
                .put("c", "1", keys: ["k"], in: clients),
            ])
            #expect(outcomes == [.replaced, .created])
            reader.endSnapshot()
            #expect(try reader.ids(clients, .keys(0)) == ["a", "c"])
            #expect(try reader.ids(clients, .sequences()) == ["a", "c"])
            backend.call.now = 2_000_000
            #expect(try reader.count(clients) == 2)
        }
        let inspector = try Inspector(path)
        #expect(try inspector.rows("PRAGMA user_version") == [["4"]])
        #expect(
            try inspector.rows("SELECT name FROM sqlite_schema WHERE name IN ('crudd_index_1_a', 'mine')") == [["mine"]]
        )
        #expect(try inspector.rows("PRAGMA integrity_check") == [["ok"]])
        let backend = try PluginBackend(path: path)
        backend.call.now = 1_000_000
        #expect(try backend.reader().count(backend.open("clients", indexes: ["a"])) == 3)
    }

    /// What version 3 has beside version 2.
    private static let history = """
        DROP TABLE crudd_history; DROP TABLE crudd_removed_1; DROP INDEX crudd_unsequenced_1; PRAGMA user_version = 2
        """

    @Test(arguments: [
        history, "DROP TABLE crudd_removed_1", "DELETE FROM crudd_history", "DROP INDEX crudd_sequence_1",
    ])
    func rememberRemovalsFromNowOn(missing: String) throws {
        do {
            let backend = try PluginBackend(path: path)
            let clients = try backend.open("clients", hasSequences: true)
            _ = try backend.write([.put("a", "1", in: clients), .put("b", "1", in: clients)])
        }
        try Inspector(path).execute(missing)
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients", hasSequences: true)
        _ = try backend.write([.remove("a", in: clients)])
        let reader = try backend.reader()
        #expect(try reader.ids(clients, .sequences()) == ["b", "a"])
        #expect(try reader.ids(clients) == ["b"])
        let inspector = try Inspector(path)
        #expect(try inspector.rows("SELECT count(*) FROM crudd_history WHERE identity > 0") == [["1"]])
        #expect(try inspector.rows("PRAGMA user_version") == [["4"]])
    }

    @Test func areLeftAsTheyWereWhenThatFails() throws {
        try makeVersion1("ALTER TABLE crudd_2_Clients ADD COLUMN sequence TEXT;")
        #expect(try failure { try PluginBackend(path: path) }?.message.contains("sequence") == true)
        let inspector = try Inspector(path)
        #expect(try inspector.rows("PRAGMA user_version") == [["1"]])
        #expect(try inspector.rows("SELECT name FROM sqlite_schema WHERE name = 'crudd_index_1_a'").count == 1)
        #expect(try inspector.rows("SELECT sql LIKE '%STRICT' FROM sqlite_schema WHERE name = 'clients'") == [["1"]])
    }

    @Test func anEmptyOneIsUpgradedToo() throws {
        try Inspector(path).execute(
            """
            CREATE TABLE crudd_collections (number INTEGER PRIMARY KEY, name TEXT NOT NULL, format TEXT NOT NULL,
                table_name TEXT NOT NULL UNIQUE COLLATE NOCASE, UNIQUE (name, format)) STRICT;
            PRAGMA application_id = \(0x6372_7564);
            PRAGMA user_version = 1;
            """)
        let backend = try PluginBackend(path: path)
        _ = try backend.write([.put("a", "1", in: backend.open("clients", indexes: ["x"]))])
    }
}
