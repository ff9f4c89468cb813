import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// Writes of a schema that other daemons write as well.
@Suite struct SharedWriteTests {
    private let server: PostgreSQLServer

    init() throws {
        server = try PostgreSQLServer.shared()
    }

    private func open(_ schema: String) throws -> PluginBackend {
        try PluginBackend.open(server.connection, schema: schema, #", "shared": true"#)
    }

    private func run(_ sql: String) throws {
        #expect(try server.query(sql) != nil, "\(sql)")
    }

    /// An atomic batch that finds a record absent, and creates it or one with the same lock, keeps others from creating
    /// it.
    @Test func checkOfAnAbsentRecordExcludesOthersThatCreateIt() throws {
        let backend = try open("absent")
        let collection = try backend.open("c")
        try run(
            """
            CREATE TABLE absent.locks (mode text);
            CREATE FUNCTION absent.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO absent.locks SELECT mode FROM pg_locks
                WHERE locktype = 'advisory' AND pid = pg_backend_pid();
                RETURN new;
            END $$;
            CREATE TRIGGER note BEFORE INSERT ON absent.c FOR EACH ROW EXECUTE FUNCTION absent.note()
            """)
        let outcomes = try backend.write(
            [.check("a", if: .absent, in: collection), .put("a", "1", in: collection)], isAtomic: true)
        #expect(outcomes == [.passed, .created])
        #expect(try server.query("SELECT mode FROM absent.locks") == "ExclusiveLock")
    }

    /// A record is locked when a daemon reads it to write it, until it has.
    @Test func recordThatIsReadToBeWrittenIsLocked() throws {
        let (first, second) = (try open("contended"), try open("contended"))
        let (collection, other) = (try first.open("c"), try second.open("c"))
        let reader = try first.reader()
        func locks() throws -> String? {
            try server.query(
                """
                SELECT count(DISTINCT id.pid) FROM pg_locks AS id JOIN pg_locks AS records USING (pid)
                WHERE id.locktype = 'advisory' AND records.relation = 'contended.c'::regclass
                """)
        }
        // Locks them again where the server has ended the transaction, in which nothing happens, before it was seen.
        func lock(_ ids: [String], withItems: Bool = true) throws -> [PluginRecord?] {
            let deadline = Deadline()
            while true {
                let found = try reader.read(ids, in: collection, withItems: withItems, toWrite: true)
                if try locks() == "1" { return found }
                try #require(!deadline.hasPassed, "nothing is locked")
            }
        }
        func update(_ revision: String, from former: String, in collection: PluginCollection) throws -> PluginOutcome {
            try collection.backend.writeWhenAvailable(
                .put("a", "1", revision: revision, if: .revision(former), in: collection))
        }
        _ = try first.write([.put("a", "0", revision: "r2", in: collection)])
        #expect(try reader.read(["a"], in: collection)[0]?.revision == "r2")
        #expect(try locks() == "0")
        #expect(try lock(["none", "a", "a"]).map { $0?.revision } == [nil, "r2", "r2"])
        #expect(try update("r3", from: "r2", in: collection) == .replaced)
        #expect(try locks() == "0")
        // A batch that is not of these records alone is written without.
        _ = try reader.read(["a"], in: collection, toWrite: true)
        let outcomes = try first.write([
            .put("b", "1", in: collection),
            .put("a", "1", revision: "r4", if: .revision("r3"), in: collection),
        ])
        #expect(outcomes == [.created, .replaced])
        #expect(try locks() == "0")
        _ = try lock(["a"], withItems: false)
        reader.endSnapshot()
        #expect(try locks() == "0")
        // A daemon that has locked it and does nothing, as it is frozen, is not waited for.
        _ = try lock(["a", "none"])
        #expect(try update("r5", from: "r4", in: other) == .replaced)
        #expect(try update("r6", from: "r4", in: collection) == .mismatch(current: "r5"))
        #expect(try update("r6", from: "r5", in: collection) == .replaced)
    }

    /// A record that another transaction deletes and creates anew is there all the time.
    @Test(arguments: ["update", "remove", "check", "another revision"])
    func waitsForWhatIsDeletedAndCreated(operation: String) throws {
        let schema = "anew \(operation)"
        let backend = try open(schema)
        let collection = try backend.open("c")
        let table = #""\#(schema)".c"#
        var outcomes: [PluginOutcome] = []
        // A slow machine may have the session hold its lock for longer than others wait.
        for _ in 0..<20 {
            _ = try backend.write([.put("a", "1", revision: "r1", in: collection)])
            let session = try ChildProcess(
                "psql",
                [
                    "-X", "-q", "-d", server.connection, "-c",
                    """
                    BEGIN; DELETE FROM \(table) WHERE id = 'a';
                    INSERT INTO \(table) (id, revision, item) VALUES ('a', 'r2', '2'); SELECT pg_sleep(0.3); COMMIT
                    """,
                ], descriptors: [])
            let sleeping = "query LIKE '%DELETE FROM \(table)%' AND wait_event = 'PgSleep'"
            let deadline = Deadline()
            while try server.query("SELECT count(*) FROM pg_stat_activity WHERE \(sleeping)") != "1" {
                try #require(!deadline.hasPassed)
                guard try session.isRunning else { break }
            }
            switch operation {
            case "update": outcomes = try backend.write([.put("a", "3", if: .present, in: collection)])
            case "remove": outcomes = try backend.write([.remove("a", in: collection)])
            case "check": outcomes = try backend.write([.check("a", if: .present, in: collection)], isAtomic: true)
            default: outcomes = try backend.write([.check("a", if: .revision("r1"), in: collection)], isAtomic: true)
            }
            try session.waitForExit()
            if outcomes != [.refused(CRUDD_UNAVAILABLE)] { break }
        }
        switch operation {
        case "update": #expect(outcomes == [.replaced])
        case "another revision": #expect(outcomes == [.mismatch(current: "r2")])
        default: #expect(outcomes == [.passed])
        }
    }
}
