import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// Records that another session has locked.
@Suite struct RecordLockTests {
    private let server: PostgreSQLServer

    init() throws {
        server = try PostgreSQLServer.shared()
    }

    private func run(_ sql: String) throws {
        #expect(try server.query(sql) != nil, "\(sql)")
    }

    /// The record alone is refused; the lease is renewed, and everything else is read and written.
    @Test func lockedRecordIsUnavailableByItself() throws {
        let backend = try open("locked", "")
        let collection = try backend.open("c")
        #expect(try backend.write([.put("a", "0", in: collection)]) == [.created])
        let mark = "WHERE id = 'a' FOR UPDATE"
        let session = try ChildProcess(
            "psql",
            [
                "-X", "-q", "-d", server.connection, "-c",
                "BEGIN; SELECT id FROM locked.c \(mark); SELECT pg_sleep(600)",
            ], descriptors: [])
        let sleeping = "FROM pg_stat_activity WHERE query LIKE '%locked.c \(mark.replacing("'", with: "''"))%'"
        try wait("the record is locked") {
            try server.query("SELECT count(*) \(sleeping) AND wait_event = 'PgSleep'") == "1"
        }
        try useWithout("a", backend, collection, "locked")
        try run("SELECT pg_terminate_backend(pid) \(sleeping)")
        try session.waitForExit()
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.replaced])
    }

    /// The same where a lock is that of another server, and has no time-out here.
    @Test func recordWithoutReplyIsUnavailableByItself() throws {
        let backend = try open("remote", #", "table_setup": "SELECT 1""#)
        let collection = try backend.open("c")
        #expect(try backend.write([.put("a", "0", in: collection)]) == [.created])
        try run(
            """
            CREATE FUNCTION remote.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF new.id = 'a' THEN PERFORM pg_sleep(600); END IF;
                RETURN new;
            END $$;
            CREATE TRIGGER wait BEFORE INSERT ON remote.c FOR EACH ROW EXECUTE FUNCTION remote.wait()
            """)
        try useWithout("a", backend, collection, "remote")
        try run("DROP TRIGGER wait ON remote.c")
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.replaced])
    }

    private func open(_ schema: String, _ options: String) throws -> PluginBackend {
        try PluginBackend.open(server.connection, schema: schema, options)
    }

    /// Writes and reads until the lease has been renewed twice, and all but the record written in between.
    private func useWithout(
        _ id: String, _ backend: PluginBackend, _ collection: PluginCollection, _ schema: String
    ) throws {
        let other = try backend.open("other")
        let reader = try backend.reader()
        let expiry = "SELECT expires_at FROM \(schema).crudd_lease WHERE number = 1"
        for _ in 0..<2 {
            let renewed = try server.query(expiry)
            // On a busy machine others may be refused, too.
            var othersAreWritten = false
            try wait("the others are written, and the lease is renewed") {
                let outcomes = try backend.write([
                    .put("b", "1", in: collection), .put(id, "1", in: collection), .put("d", "1", in: collection),
                    .put("e", "1", in: other),
                ])
                #expect(outcomes[1] == .refused(CRUDD_UNAVAILABLE))
                if [0, 2, 3].allSatisfy({ [.created, .replaced].contains(outcomes[$0]) }) { othersAreWritten = true }
                #expect(try reader.read(id, in: collection)?.item == "0")
                return try othersAreWritten && server.query(expiry) != renewed
            }
        }
        #expect(backend.states.isEmpty, "\(backend.states)")
    }

    private func wait(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = Deadline()
        while try !condition() {
            guard !deadline.hasPassed else { throw Failure(what) }
            poll(nil, 0, 20)
        }
    }
}
