import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// Errors of the server in the middle of a transaction, and at its COMMIT.
@Suite struct ServerErrorTests {
    private let server: PostgreSQLServer

    init() throws {
        server = try PostgreSQLServer.shared()
    }

    /// What becomes of a batch of three records, the second of which the server refuses.
    enum Fate: Sendable {
        case applied
        /// All but the second.
        case refused
        case failed(Int)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let state: String
        /// How often the server refuses.
        var times = 1
        var isAtCommit = false
        var isShared = false
        let fate: Fate

        var testDescription: String {
            "\(state) \(times) times\(isAtCommit ? " at COMMIT" : "")\(isShared ? ", shared" : "")"
        }
    }

    /// A backend, a collection in it, and a trigger that raises the error when the record `x` is stored.
    private func open(_ fault: Case, schema: String) throws -> (PluginBackend, PluginCollection) {
        let backend = try PluginBackend.open(
            server.connection, schema: schema, #", "shared": \#(fault.isShared)"#)
        let collection = try backend.open("c")
        let event =
            fault.isAtCommit
            ? "CONSTRAINT TRIGGER fault AFTER INSERT ON \(schema).c DEFERRABLE INITIALLY DEFERRED"
            : "TRIGGER fault BEFORE INSERT ON \(schema).c"
        let script = """
            CREATE SEQUENCE \(schema).faults;
            CREATE FUNCTION \(schema).fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('\(schema).faults') <= \(fault.times) THEN
                    RAISE EXCEPTION 'injected' USING ERRCODE = '\(fault.state)';
                END IF;
                RETURN new;
            END $$;
            CREATE \(event) FOR EACH ROW WHEN (new.id = 'x') EXECUTE FUNCTION \(schema).fault()
            """
        #expect(try server.query(script) != nil)
        return (backend, collection)
    }

    @Test(arguments: [
        // A deadlock, a serialization failure: nothing was applied, and the batch is executed again.
        Case(state: "40P01", times: 4, fate: .applied), Case(state: "40001", times: 4, fate: .applied),
        Case(state: "40001", times: 4, isAtCommit: true, fate: .applied),
        Case(state: "40P01", times: 4, isAtCommit: true, isShared: true, fate: .applied),
        // For as long as a request waits, and not so and so often.
        Case(state: "40001", times: 40, isShared: true, fate: .applied),
        Case(state: "40P01", times: 40, fate: .applied),
        Case(state: "40001", times: 1_000_000, fate: .failed(CRUDD_UNAVAILABLE)),
        Case(state: "40001", times: 1_000_000, isAtCommit: true, fate: .failed(CRUDD_UNAVAILABLE)),
        // A statement that was cancelled, or took too long.
        Case(state: "57014", fate: .failed(CRUDD_UNAVAILABLE)),
        Case(state: "57014", isAtCommit: true, fate: .failed(CRUDD_UNAVAILABLE)),
        // A server, or one of several, that is being lost.
        Case(state: "XX000", fate: .failed(CRUDD_UNAVAILABLE)), Case(state: "08006", fate: .failed(CRUDD_UNAVAILABLE)),
        Case(state: "53100", fate: .failed(CRUDD_NO_SPACE)),
        Case(state: "53100", isAtCommit: true, fate: .failed(CRUDD_NO_SPACE)),
        // What the record is to blame for costs no other one.
        Case(state: "23514", times: 99, fate: .refused),
        Case(state: "23514", times: 99, isAtCommit: true, fate: .refused),
        // Any other error of COMMIT leaves the outcome open, which is reread; with several daemons that proves nothing.
        Case(state: "XX001", isAtCommit: true, fate: .failed(CRUDD_UNAVAILABLE)),
        Case(state: "XX001", isAtCommit: true, isShared: true, fate: .failed(CRUDD_OUTCOME_UNKNOWN)),
        Case(state: "58030", isAtCommit: true, isShared: true, fate: .failed(CRUDD_OUTCOME_UNKNOWN)),
    ])
    func decidesWhatBecomesOfABatch(fault: Case) throws {
        let place = "\(fault.isAtCommit ? "late" : "early")_\(fault.isShared ? "shared" : "owned")"
        let (backend, collection) = try open(fault, schema: "fault_\(fault.state.lowercased())_\(fault.times)_\(place)")
        let batch = ["a", "x", "b"].map { PluginMutation.put($0, "1", if: .absent, in: collection) }
        func ids() throws -> [String] { try backend.reader().scan(collection).map(\.id) }
        switch fault.fate {
        case .applied:
            #expect(try backend.write(batch) == [.created, .created, .created])
            #expect(try ids() == ["a", "b", "x"])
        case .refused:
            #expect(try backend.write(batch) == [.created, .refused(CRUDD_UNSUPPORTED), .created])
            #expect(try ids() == ["a", "b"])
        case .failed(let status):
            let error = #expect(throws: CallError.self) { try backend.write(batch) }
            #expect(Int(error?.status ?? 0) == status, "\(error.map { "\($0)" } ?? "")")
            #expect(try ids() == [])
        }
        #expect(try backend.write([.put("later", "1", in: collection)]) == [.created])
    }

    /// Statements that wait for another session's lock are ended when their timeout has passed.
    @Test func statementsEndInTime() throws {
        let backend = try PluginBackend.open(server.connection, schema: "waiting")
        let collection = try backend.open("c")
        #expect(try backend.write([.put("a", "1", revision: "r1", in: collection)]) == [.created])
        let reader = try backend.reader()
        #expect(try reader.read("a", in: collection)?.item == "1")
        let locker = try ChildProcess(
            "psql",
            [
                "-X", "-q", "-d", server.connection, "-c",
                "BEGIN; LOCK TABLE waiting.c IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)",
            ], descriptors: [])
        let deadline = Deadline()
        func queries(_ condition: String) throws -> String? {
            try server.query("SELECT state, query FROM pg_stat_activity WHERE \(condition)")
        }
        while try queries("query LIKE 'BEGIN; LOCK TABLE waiting.c%' AND wait_event = 'PgSleep'") == "" {
            try #require(!deadline.hasPassed)
        }
        let start = ContinuousClock.now
        for isWrite in [false, true] {
            backend.call.deadline = Self.monotonic(in: 0.5)
            let error = #expect(throws: CallError.self) {
                if isWrite {
                    _ = try backend.write([.put("a", "2", revision: "r2", in: collection)])
                } else {
                    _ = try reader.read("a", in: collection)
                }
            }
            let expected = isWrite ? [CRUDD_UNAVAILABLE, CRUDD_OUTCOME_UNKNOWN] : [CRUDD_UNAVAILABLE]
            #expect(expected.contains(Int(error?.status ?? 0)), "\(error.map { "\($0)" } ?? "")")
        }
        #expect(start.duration(to: .now) < .seconds(10))
        let others = "state <> 'idle' AND pid <> pg_backend_pid()"
        while let left = try queries("query LIKE '%\"waiting\".\"c\"%' AND \(others)"), left != "" {
            try #require(!deadline.hasPassed, "the server still executes \(left)")
        }
        let locks = "query LIKE 'BEGIN; LOCK TABLE waiting.c%'"
        _ = try server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \(locks)")
        try locker.waitForExit()
        backend.call.deadline = 0
        #expect(try reader.read("a", in: collection)?.item == "1", "what has timed out was not executed later")
        #expect(try backend.write([.put("a", "3", revision: "r3", in: collection)]) == [.replaced])
    }

    /// The time that the server gives statements is set again where the transaction that has set it was undone.
    @Test func timeoutOutlivesAFailure() throws {
        let (backend, collection) = try open(Case(state: "57014", fate: .failed(CRUDD_UNAVAILABLE)), schema: "limited")
        let script = """
            CREATE TABLE limited.seen (setting text);
            CREATE FUNCTION limited.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO limited.seen VALUES (current_setting('statement_timeout'));
                RETURN new;
            END $$;
            CREATE TRIGGER see BEFORE INSERT ON limited.c FOR EACH ROW EXECUTE FUNCTION limited.see()
            """
        #expect(try server.query(script) != nil)
        backend.call.deadline = Self.monotonic(in: 25)
        #expect(throws: CallError.self) { try backend.write([.put("x", "1", in: collection)]) }
        #expect(try backend.write([.put("x", "1", in: collection)]) == [.created])
        #expect(try server.query("SELECT setting FROM limited.seen") == "30s")
    }

    /// Nanoseconds of CLOCK_MONOTONIC.
    private static func monotonic(in seconds: Double) -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec) + Int64(seconds * 1e9)
    }
}
