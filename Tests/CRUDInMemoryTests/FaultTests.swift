import CRUDInMemory
import CRUDTestSupport
import Synchronization
import Testing

/// Calls that fail as those of a daemon may, and what survives that.
@Suite(.timeLimit(.minutes(1))) struct FaultTests {
    typealias Account = TransactionTests.Account

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    private static func open() async throws -> (InMemoryDatabase, Repository<Account>) {
        let database = InMemoryDatabase()
        let accounts = database.repository("accounts", of: Account.self)
        try await accounts.create(Account(id: 1, balance: 100))
        return (database, accounts)
    }

    @Test func aLostReplyIsOneOfAWriteThatWasApplied() async throws {
        let (database, accounts) = try await Self.open()
        database.inject(.lostReply)
        #expect(try await accounts.count() == 1)
        await expectError(.outcomeUnknown) { try await accounts.create(Account(id: 2, balance: 0)) }
        #expect(try await accounts.count() == 2)
        await expectError(.recordExists) { try await accounts.create(Account(id: 2, balance: 0)) }
        database.inject(.lostReply)
        await expectError(.outcomeUnknown) { try await accounts.delete(id: 3) }
    }

    @Test func aLostRequestIsOneOfAWriteThatWasNotApplied() async throws {
        let (database, accounts) = try await Self.open()
        database.inject(.lostRequest, times: 2, in: "accounts")
        try await database.repository("others").create(id: "x", item: 1)
        for _ in 0..<2 {
            await expectError(.outcomeUnknown) { try await accounts.create(Account(id: 2, balance: 0)) }
        }
        try await accounts.create(Account(id: 2, balance: 0))
    }

    @Test func aDaemonIsAwayUntilItIsBack() async throws {
        let (database, accounts) = try await Self.open()
        database.inject(.unavailable, times: nil)
        for _ in 0..<3 { await expectError(.unavailable) { try await accounts.read(id: 1) } }
        await expectError(.unavailable) { try await accounts.transaction { $0.delete(id: 1) } }
        database.removeFaults()
        #expect(try await accounts.read(id: 1).balance == 100)
        // One that follows does not notice.
        database.inject(.unavailable, times: 2)
        var changes = accounts.changes().makeAsyncIterator()
        #expect(try await changes.next()?.id == "1")
    }

    @Test func aSlowCallHonoursItsDeadline() async throws {
        let (database, accounts) = try await Self.open()
        database.inject(.slow(.seconds(3600)), times: 2)
        await CRUDClient.withDeadline(in: .milliseconds(30)) {
            let read = await expectError(.timedOut) { try await accounts.read(id: 1) }
            #expect(read?.cause is DeadlineExceeded)
        }
        await CRUDClient.withDeadline(in: .milliseconds(500)) {
            let write = await expectError(.outcomeUnknown) { try await accounts.delete(id: 1) }
            #expect(write?.cause is DeadlineExceeded)
        }
        #expect(try await accounts.exists(id: 1))
        database.inject(.slow(.seconds(3600)))
        let task = Task { try await accounts.read(id: 1) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let clock = ManualClock()
        let slow = InMemoryDatabase(clock: clock)
        slow.inject(.slow(.seconds(60)))
        let isOver = Flag()
        let write = Task {
            defer { isOver.value.store(true, ordering: .relaxed) }
            return try await slow.repository("c").create(id: "x", item: 1)
        }
        while !isOver.value.load(ordering: .relaxed) {
            clock.advance(by: .seconds(1))
            await Task.yield()
        }
        _ = try await write.value
    }

    /// A change whose request was lost has taken effect once; one whose reply was lost is unknown, and has, too.
    @Test func aModificationResolvesWhatTheRevisionProves() async throws {
        let (database, accounts) = try await Self.open()
        database.inject(.lostRequest, times: 3)
        #expect(try await accounts.modify(id: 1) { $0.balance += 1 }.balance == 101)
        database.inject(.lostReply)
        await expectError(.outcomeUnknown) { try await accounts.modify(id: 1) { $0.balance += 1 } }
        #expect(try await accounts.read(id: 1).balance == 102)
        database.inject(.lostRequest, times: nil)
        let error = await expectError(.outcomeUnknown) {
            try await accounts.modify(id: 1, within: .seconds(2)) { $0.balance += 1 }
        }
        #expect(error?.message.contains("lost") == true)
        database.removeFaults()
        #expect(try await accounts.read(id: 1).balance == 102)
    }

    @Test func aModificationDeterminesTheExpiry() async throws {
        let (database, accounts) = try await Self.open()
        try await accounts.modify(id: 1, expiresIn: .seconds(100)) { _ in }
        let revision = try await accounts.readVersioned(id: 1)
        #expect(revision.expiresAt != nil)
        let forever = try await accounts.modify(id: 1, expiresIn: nil, within: .seconds(5)) { $0.balance += 1 }
        #expect(forever.balance == 101)
        #expect(try await accounts.readVersioned(id: 1).expiresAt == nil)
        database.inject(.lostRequest)
        try await accounts.modify(id: 1, expiresIn: .seconds(50)) { $0.balance += 1 }
        #expect(try await accounts.readVersioned(id: 1).expiresAt != nil)
    }

    @Test func aTransactionResolvesWhatItsChecksProve() async throws {
        let (database, accounts) = try await Self.open()
        func deposit() async throws {
            try await database.transaction { transaction in
                let accounts = transaction.collection("accounts", of: Account.self)
                var account = try await accounts.read(id: 1)
                account.balance += 1
                try accounts.update(account)
            }
        }
        database.inject(.lostRequest, times: 2)
        try await deposit()
        #expect(try await accounts.read(id: 1).balance == 101)
        database.inject(.lostReply)
        await expectError(.outcomeUnknown) { try await deposit() }
        #expect(try await accounts.read(id: 1).balance == 102)
        // Without a record that it has both read and written, it is not sent again.
        database.inject(.lostRequest)
        await expectError(.outcomeUnknown) {
            try await database.transaction { transaction in
                let accounts = transaction.collection("accounts", of: Account.self)
                _ = try await accounts.read(id: 1)
                try accounts.create(Account(id: 2, balance: 1))
            }
        }
        #expect(try await accounts.count() == 1)
    }
}
