import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport
import Testing

/// Connections that are lost between a commit and the news of it.
@Suite struct LostCommitTests {
    private func open(_ relay: Relay, _ schema: String, _ options: String = "") throws -> PluginBackend {
        try PluginBackend.open(relay.connection, schema: schema, options)
    }

    /// A write that the network has held is not committed over a later one, whatever became of it in between.
    @Test(arguments: [false, true])
    func lateWriteIsRefused(isShared: Bool) throws {
        let server = try PostgreSQLServer.shared()
        let relay = try Relay(to: server)
        defer { relay.end() }
        let backend = try open(relay, "late \(isShared)", isShared ? #", "shared": true"# : "")
        let collection = try backend.open("clients")
        #expect(try backend.write([.put("a", "1", in: collection)]) == [.created])
        // Everything is held, so that the outcome cannot be found out.
        relay.hold()
        let error = #expect(throws: CallError.self) { try backend.write([.put("a", "0", in: collection)]) }
        #expect(error?.status == CRUDD_OUTCOME_UNKNOWN, "\(error.map { "\($0)" } ?? "")")
        // What comes from now on passes.
        relay.letPass()
        #expect(try PluginBackend.whenAvailable { try backend.write([.put("a", "2", in: collection)]) } == [.replaced])
        #expect(try backend.reader().read("a", in: collection)?.item == "2")
        try relay.release()
        #expect(try backend.reader().read("a", in: collection)?.item == "2")
        #expect(try server.query("SELECT item FROM \"late \(isShared)\".clients") == "2")
        #expect(backend.states.last?.isUp == true)
        let version = try backend.reader().dataVersion()
        #expect(isShared || version != 0, "records may be cached again")
    }

    /// What a write returns, or what it has failed with; nil: it was not found out in time what has become of it, as on
    /// a machine that is busy.
    private func timelyResult(
        _ deadline: Deadline, _ write: () throws -> [PluginOutcome]
    ) throws -> Result<[PluginOutcome], CallError>? {
        do {
            return .success(try write())
        } catch let error as CallError {
            return error.status == CRUDD_OUTCOME_UNKNOWN && !deadline.hasPassed ? nil : .failure(error)
        }
    }

    /// What was committed is found by its revision.
    @Test func committedWritesAreAcknowledged() throws {
        let relay = try Relay(to: PostgreSQLServer.shared())
        defer { relay.end() }
        let backend = try open(relay, "lost commit")
        let deadline = Deadline()
        var result: Result<[PluginOutcome], CallError>?
        var name = "clients"
        while result == nil {
            name += "+"
            let collection = try backend.open(name)
            _ = try PluginBackend.whenAvailable {
                try backend.write([.put("old", "1", in: collection), .put("gone", "1", in: collection)])
            }
            relay.inject(.afterCommit)
            result = try timelyResult(deadline) {
                try backend.write([
                    .put("a", "1", revision: "r1", if: .absent, in: collection),
                    .put("old", "2", revision: "r2", in: collection), .put("new", "2", revision: "r3", in: collection),
                    .put("old", "3", revision: "r4", if: .revision("other"), in: collection),
                    .remove("gone", in: collection),
                ])
            }
        }
        #expect(
            try result?.get() == [
                .created, .refused(CRUDD_OUTCOME_UNKNOWN), .created, .mismatch(current: "r2"),
                .refused(CRUDD_OUTCOME_UNKNOWN),
            ])
        let collection = try backend.open(name)
        #expect(try backend.reader().scan(collection).map(\.revision) == ["r1", "r3", "r2"])
        #expect(try PluginBackend.whenAvailable { try backend.write([.put("b", "1", in: collection)]) } == [.created])
    }

    /// What the server has not got has changed nothing, and can be tried again. Where records are on other servers,
    /// which show what was committed only when they have recovered, that proves nothing.
    @Test(arguments: [(#", "table_setup": "SELECT 1""#, CRUDD_OUTCOME_UNKNOWN), ("", CRUDD_UNAVAILABLE)])
    func lostWritesAreUnavailable(options: String, status: Int) throws {
        let relay = try Relay(to: PostgreSQLServer.shared())
        defer { relay.end() }
        let backend = try open(relay, "lost write \(status)", options)
        let collection = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: collection)])
        for mutation in [
            PluginMutation.put("a", "2", revision: "r2", in: collection),
            .put("b", "1", revision: "r3", if: .absent, in: collection),
        ] {
            // Where the outcome is to be unknown it is at once.
            let deadline = status == CRUDD_OUTCOME_UNKNOWN ? Deadline(.zero) : Deadline()
            var result: Result<[PluginOutcome], CallError>?
            while result == nil {
                _ = try PluginBackend.whenAvailable { try backend.write([.put("other", "1", in: collection)]) }
                relay.inject(.beforeStatements)
                result = try timelyResult(deadline) { try backend.write([mutation]) }
            }
            let error = #expect(throws: CallError.self) { try result?.get() }
            #expect(error.map { Int($0.status) } == status, "\(error.map { "\($0)" } ?? "")")
            #expect(try PluginBackend.whenAvailable { try backend.write([mutation]) }.count == 1)
        }
        // Citus refuses plans that are not made for the id.
        #expect(relay.statements.contains { $0.contains("force_generic_plan") } == options.isEmpty)
    }

    /// A collection that may be gone is not taken for one that is there.
    @Test func outcomeOfADropIsUnknown() throws {
        let relay = try Relay(to: PostgreSQLServer.shared())
        defer { relay.end() }
        let backend = try open(relay, "lost drop")
        let collection = try backend.open("clients")
        _ = try backend.write([.put("a", "1", in: collection)])
        relay.inject(.afterCommit)
        let error = #expect(throws: CallError.self) { try backend.drop("clients") }
        #expect(error?.status == CRUDD_OUTCOME_UNKNOWN, "\(error.map { "\($0)" } ?? "")")
        let again = try PluginBackend.whenAvailable { try backend.open("clients") }
        #expect(try backend.reader().scan(again).isEmpty)
        #expect(try backend.write([.put("a", "1", if: .absent, in: again)]) == [.created])
    }

    /// The lease is not taken for another daemon's where the number that it has got was lost with its connection.
    @Test func leaseIsStillHeldWhereItsNumberWasLost() throws {
        let relay = try Relay(to: PostgreSQLServer.shared())
        defer { relay.end() }
        let backend = try open(relay, "lost number")
        let collection = try backend.open("clients")
        relay.inject(.afterCommitAndAdvance)
        let error = #expect(throws: CallError.self) { try backend.write([.put("a", "1", in: collection)]) }
        #expect(error?.status == CRUDD_OUTCOME_UNKNOWN, "\(error.map { "\($0)" } ?? "")")
        relay.inject(nil)
        #expect(try PluginBackend.whenAvailable { try backend.write([.put("a", "2", in: collection)]) } == [.replaced])
        #expect(try backend.reader().read("a", in: collection)?.item == "2")
    }

    /// A server with shards warns when it commits although another one does not reply. What it says is what the
    /// administrator is told, and nothing is served by then.
    @Test func warningOfACommitIsQuoted() throws {
        let relay = try Relay(to: PostgreSQLServer.shared())
        defer { relay.end() }
        let backend = try open(relay, "warned of")
        let collection = try backend.open("clients")
        func wait(isUp: Bool) throws {
            let deadline = Deadline()
            while backend.states.last?.isUp ?? true != isUp {
                try #require(!deadline.hasPassed, "\(backend.states)")
                poll(nil, 0, 20)
            }
        }
        relay.inject(.warning("connection to the remote node w1:5432 failed"))
        try wait(isUp: false)
        let words = "with a warning: connection to the remote node w1:5432 failed (SQLSTATE 01000)"
        #expect(backend.states.last?.reason.contains(words) == true, "\(backend.states)")
        relay.inject(nil)
        try wait(isUp: true)
        #expect(try PluginBackend.whenAvailable { try backend.write([.put("a", "1", in: collection)]) } == [.created])
    }

    /// With several daemons another one may have changed the record since.
    @Test func outcomeIsUnknownWhereItIsNotProved() throws {
        let relay = try Relay(to: PostgreSQLServer.shared())
        defer { relay.end() }
        let backend = try open(relay, "lost and shared", #", "shared": true"#)
        let collection = try backend.open("clients")
        let deadline = Deadline()
        var result: Result<[PluginOutcome], CallError>?
        var id = ""
        while result == nil {
            id += "a"
            _ = try PluginBackend.whenAvailable { try backend.write([.put("other", "1", in: collection)]) }
            relay.inject(.afterCommit)
            result = try timelyResult(deadline) {
                try backend.write([.put(id, "1", revision: "r1", in: collection)])
            }
        }
        #expect(try result?.get() == [.created])
        _ = try PluginBackend.whenAvailable { try backend.write([.put("other", "1", in: collection)]) }
        relay.inject(.afterCommit)
        let error = #expect(throws: CallError.self) { try backend.write([.remove(id, in: collection)]) }
        #expect(error?.status == CRUDD_OUTCOME_UNKNOWN, "\(error.map { "\($0)" } ?? "")")
    }
}
