import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import CRUDThreads
import PluginTestSupport
import Synchronization
import Testing

/// What is in a schema: the plugin's tables, and what other programs have done there.
@Suite struct SchemaTests {
    private let server: PostgreSQLServer
    private let plugin: ExportedPlugin

    init() throws {
        server = try PostgreSQLServer.shared()
        plugin = try ExportedPlugin("postgresql")
    }

    private func open(_ schema: String, _ options: String = "") throws -> PluginBackend {
        try PluginBackend.open(server.connection, schema: schema, options)
    }

    private func run(_ sql: String) throws {
        #expect(try server.query(sql) != nil, "\(sql)")
    }

    @Test func schemaOfAnotherProgramIsRefused() throws {
        try run("CREATE SCHEMA foreigner; CREATE TABLE foreigner.invoices (id int)")
        let error = #expect(throws: CallError.self) { try open("foreigner") }
        #expect(error?.status == CRUDD_UNSUPPORTED)
        #expect(error?.message.contains("invoices") == true)
        #expect(try server.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'foreigner'") == "1")
    }

    @Test func laterVersionIsRefused() throws {
        _ = try open("later").open("clients")
        try run("UPDATE later.crudd_schema SET version = 4")
        let error = #expect(throws: CallError.self) { try open("later") }
        #expect(error?.status == CRUDD_UNSUPPORTED)
        #expect(error?.message.contains("version 4") == true)
    }

    /// The longest names differ in their last byte alone, and PostgreSQL would cut them.
    @Test func namesOfEveryKindAreTablesOfTheirOwn() throws {
        let backend = try open("names")
        let long = String(repeating: "é", count: 63)
        let names = [
            "clients", "Clients", "crudd_lease", "CRUDD_x", "a\"b", "'; DROP SCHEMA names; --", "crudd_1_expiry",
            long + "aa", long + "ab", String(repeating: "x", count: 63), String(repeating: "x", count: 64), "x.y", "é",
        ]
        for (number, name) in names.enumerated() {
            let collection = try backend.open(name)
            #expect(try backend.write([.put("a", "\(number)", in: collection)]) == [.created], "\(name)")
        }
        #expect(try backend.collections() == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        for (number, name) in names.enumerated() {
            let collection = try backend.open(name, creates: false)
            #expect(try backend.reader().read("a", in: collection)?.item == "\(number)", "\(name)")
        }
        #expect(try server.query(#"SELECT item FROM names."'; DROP SCHEMA names; --""#) == "5")
    }

    /// Names of any kind can be quoted in any way, and leave room for the numbers that Citus appends.
    @Test(
        .serialized,
        arguments: [
            "clients", "it's", "a\"b", "'); DROP SCHEMA setup CASCADE; --", String(repeating: "x", count: 56),
            "crudd_" + String(repeating: "x", count: 100),
        ])
    func tablesAreSetUp(name: String) throws {
        // Citus 13.2 fails with more than 55, as it appends the number of the shard.
        try run("CREATE TABLE IF NOT EXISTS public.tables (name text CHECK (octet_length(name) <= 55 + 10))")
        let setup = "INSERT INTO public.tables VALUES ('{table}'); ALTER TABLE {table} ADD COLUMN extra int"
        let backend = try open("setup", #", "shared": true, "table_setup": "\#(setup)""#)
        let collection = try backend.open(name)
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.created])
        #expect(try backend.reader().read("a", in: collection)?.item == "1")
    }

    /// Daemons that share a schema make it, collections and indexes at the same time.
    @Test func sharedSchemaIsChangedConcurrently() throws {
        let failures = Mutex<[String]>([])
        let threads = try (0..<6).map { number in
            try Thread(named: "daemon \(number)") {
                do {
                    let backend = try open("crowded", #", "shared": true, "readers": 1"#)
                    for round in 0..<4 {
                        let own = try PluginBackend.whenAvailable {
                            try backend.open("own \(number) \(round)", indexes: ["name"])
                        }
                        _ = try backend.writeWhenAvailable(.put(PluginRecord("a", "1"), keys: [[1]], in: own))
                        let common = try PluginBackend.whenAvailable {
                            try backend.open("common \(round)", indexes: ["name", "age"])
                        }
                        _ = try backend.writeWhenAvailable(
                            .put(PluginRecord("\(number)", "1"), keys: [[1], [2]], in: common))
                    }
                } catch {
                    failures.withLock { $0.append("\(error)") }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
        let backend = try open("crowded", #", "shared": true"#)
        #expect(try backend.collections().count == 6 * 4 + 4)
        let common = try backend.open("common 3", indexes: ["name", "age"])
        #expect(try backend.reader().scan(common, PluginRange(.key(index: 1))).count == 6)
    }

    @Test func setupMayRefuseATransaction() throws {
        let backend = try open("vacuumed", #", "table_setup": "VACUUM {table}""#)
        let collection = try backend.open("clients")
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.created])
    }

    @Test func failedSetupLeavesNothingBehind() throws {
        let backend = try open("failing", #", "table_setup": "SELECT nonsense FROM {table}""#)
        #expect(throws: CallError.self) { try backend.open("clients") }
        #expect(try backend.collections() == [])
        #expect(
            try server.query("SELECT count(*) FROM pg_tables WHERE tablename = 'clients' AND schemaname = 'failing'")
                == "0")
    }

    @Test func rowsOfOthersAreRecords() throws {
        let backend = try open("edited")
        let collection = try backend.open("clients", indexes: ["name"])
        try run(#"INSERT INTO edited.clients (id, item) VALUES ('a', '{"name": "Anna"}'), ('b', '2')"#)
        let reader = try backend.reader()
        #expect(try reader.read("a", in: collection)?.item == #"{"name": "Anna"}"#)
        #expect(try reader.scan(collection, PluginRange(.unkeyed(index: 0))).map(\.id) == ["a", "b"])
        try run("DROP TABLE edited.clients")
        #expect(throws: CallError.self) { try reader.read("a", in: collection) }
    }

    /// Each such record is corrupt by itself, until it is overwritten.
    @Test(.serialized, arguments: ["''", "'no revision'", "'é'", "repeat('x', 65)", "'r' || chr(10)"])
    func invalidRevisionIsThatOfOneCorruptRecord(_ revision: String) throws {
        try run("DROP SCHEMA IF EXISTS damaged CASCADE")
        let backend = try open("damaged")
        let collection = try backend.open("clients", indexes: ["name"])
        _ = try backend.write(["a", "b", "c"].map { .put($0, "1", in: collection) })
        let spoil = "UPDATE damaged.clients SET revision = \(revision) WHERE id = 'b'"
        try run(spoil)
        let reader = try backend.reader()
        let corrupt = PluginRecord("b", bytes: [], revision: "invalid")
        #expect(try reader.read("b", in: collection) == corrupt)
        #expect(try reader.scan(collection).map(\.revision) == ["1", "invalid", "1"])
        #expect(try reader.scan(collection)[1] == corrupt)
        let refused = try backend.write([
            .put("b", "2", if: .revision("1"), in: collection), .remove("b", if: .revision("2"), in: collection),
            .setKeys("b", [[1]], ifRevision: "1", in: collection),
        ])
        #expect(refused == [PluginOutcome](repeating: .mismatch(current: "invalid"), count: 3))
        // The host knows the record by this revision.
        #expect(
            try backend.write([
                .setKeys("b", [[1]], ifRevision: "invalid", in: collection),
                .put("b", "3", revision: "2", if: .revision("invalid"), in: collection),
            ]).last == .replaced)
        #expect(try reader.read("b", in: collection)?.item == "3")
        #expect(
            try backend.write([.put("b", "4", if: .revision("invalid"), in: collection)]) == [.mismatch(current: "2")])
        try run(spoil)
        #expect(try backend.write([.put("b", "5", in: collection)]) == [.replaced])
        try run(spoil)
        _ = try backend.write([.remove("b", if: .revision("invalid"), in: collection)])
        #expect(try reader.read("b", in: collection) == nil)
    }

    /// It is left out, as no client could name it.
    @Test func rowWithAnInvalidIDIsIgnored() throws {
        let backend = try open("misnamed")
        let collection = try backend.open("clients", hasSequences: true)
        _ = try backend.write((0..<40).map { .put("\(100 + $0)", "1", in: collection) })
        try run(
            """
            INSERT INTO misnamed.clients (id, item) VALUES ('1' || chr(10), '1'), (repeat('1', 513), '1');
            UPDATE misnamed.clients SET id = '120' || chr(7) WHERE id = '120'
            """)
        let reader = try backend.reader()
        let ids = (100..<140).filter { $0 != 120 }.map(String.init)
        #expect(try reader.scan(collection).map(\.id) == ids)
        #expect(try reader.scan(collection, .sequences()).map(\.id) == ids)
        #expect(try reader.scan(collection, limit: 30).map(\.id) == Array(ids.prefix(30)))
    }

    /// What a trigger says is no word about the commit.
    @Test func triggerMayWarn() throws {
        let backend = try open("warned")
        let collection = try backend.open("clients")
        try run(
            """
            CREATE FUNCTION warned.warn() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE WARNING 'look at this'; RETURN NEW; END$$;
            CREATE TRIGGER warn BEFORE INSERT ON warned.clients FOR EACH ROW EXECUTE FUNCTION warned.warn();
            CREATE CONSTRAINT TRIGGER warn_late AFTER INSERT ON warned.clients
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warned.warn()
            """)
        for id in ["a", "b"] { #expect(try backend.write([.put(id, "1", in: collection)]) == [.created]) }
        #expect(try backend.write([.put("c", "1", in: collection)], isAtomic: true) == [.created])
    }

    /// Zero, as the host gives it to plugins, is "never" also in the table.
    @Test func expiryOfZeroIsNone() throws {
        let backend = try open("immortal")
        let collection = try backend.open("clients", indexes: ["name"])
        _ = try backend.write([.put(PluginRecord("z", bytes: [49], expiresAt: 1 << 50), in: collection)])
        try run(
            """
            INSERT INTO immortal.clients (id, item, revision, expires_at)
            VALUES ('a', '1', 'r', 0), ('b', '1', 'r', 0), ('c', '1', 'r', 0)
            """)
        let reader = try backend.reader()
        #expect(try reader.count(collection) == 4)
        #expect(
            try backend.write([
                .put("a", "2", if: .absent, in: collection), .put("b", "2", in: collection),
                .put("c", "2", if: .present, in: collection),
            ]) == [.exists, .replaced, .replaced])
        try run("UPDATE immortal.clients SET expires_at = 0 WHERE id <> 'z'")
        #expect(
            try backend.write([
                .setKeys("a", [[1]], ifRevision: "r", in: collection), .remove("b", in: collection),
                .put("a", "3", if: .revision("r"), in: collection), .remove("c", if: .revision("1"), in: collection),
            ]) == [.passed, .removed, .replaced, .removed])
    }

    /// The others of the batch are stored.
    @Test func constraintRefusesOneRecordAlone() throws {
        let backend = try open("constrained")
        let collection = try backend.open("clients")
        try run("ALTER TABLE constrained.clients ADD CHECK (id <> 'c')")
        let ids = ["a", "b", "c", "d", "e"]
        let outcomes = try backend.write(ids.map { .put($0, "1", in: collection) })
        #expect(outcomes == [.created, .created, .unsupported, .created, .created])
        #expect(try backend.reader().scan(collection).map(\.id) == ["a", "b", "d", "e"])
        #expect(throws: CallError.self) {
            try backend.write(
                ids.map { .put("new \($0)", "1", in: collection) } + [.put("c", "1", in: collection)], isAtomic: true)
        }
        #expect(try backend.reader().count(collection) == 4)
    }

    @Test func serverWithoutSynchronousCommitIsNotDurable() throws {
        #expect(try open("durable").has(CRUDD_IS_DURABLE))
        let lossy = try PluginBackend.open(
            "\(server.connection) options='-c synchronous_commit=off'", schema: "lossy")
        #expect(!lossy.has(CRUDD_IS_DURABLE))
    }

    @Test func secondBackendWaitsForTheLease() throws {
        let first = try open("leased")
        let error = #expect(throws: CallError.self) {
            try PluginBackend(plugin, options: #"{"connection": "\#(server.connection)", "schema": "leased"}"#)
        }
        #expect(error?.status == CRUDD_UNAVAILABLE)
        #expect(try first.reader().dataVersion() != 0)
        // As if it had been frozen for long, and another one had taken over.
        let collection = try first.open("clients")
        try run("UPDATE leased.crudd_lease SET expires_at = now() - interval '1 second'")
        let second = try open("leased")
        #expect(throws: CallError.self) { try first.write([.put("a", "1", in: collection)]) }
        let taken = try second.open("clients")
        #expect(try second.write([.put("a", "2", in: taken)]) == [.created])
    }
}
