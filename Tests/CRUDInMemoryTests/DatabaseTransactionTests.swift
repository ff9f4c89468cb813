import CRUDInMemory
import CRUDTestSupport
import Synchronization
import Testing

/// Transactions that read before they write.
@Suite(.timeLimit(.minutes(1))) struct DatabaseTransactionTests {
    typealias Account = TransactionTests.Account
    typealias Transfer = TransactionTests.Transfer

    private struct Overdrawn: Error {}

    private final class Counter: Sendable {
        let value = Atomic(0)
    }

    enum Event: CaseIterable {
        case changes, goes, comes
    }

    private static func open(_ backing: Backing) async throws -> (Collections, any RecordDatabase) {
        let collections = try await backing.open()
        let database = try #require(collections.database)
        let accounts = database.repository("accounts", of: Account.self)
        for id in 0..<4 { try await accounts.create(Account(id: id, balance: 100)) }
        return (collections, database)
    }

    private static func transfer(
        _ amount: Int, from payerID: Int, to payeeID: Int, _ number: Int, in database: any RecordDatabase
    ) async throws -> Int {
        try await database.transaction { transaction in
            let accounts = transaction.collection("accounts", of: Account.self)
            var (payer, payee) = (try await accounts.read(id: payerID), try await accounts.read(id: payeeID))
            guard payer.balance >= amount else { throw Overdrawn() }
            payer.balance -= amount
            payee.balance += amount
            try accounts.update(payer)
            try accounts.update(payee)
            try transaction.collection("transfers", of: Transfer.self)
                .create(Transfer(amount: amount), id: "\(payerID)-\(number)")
            return payer.balance
        }
    }

    /// Nothing is lost and nothing is made, however many transfer at the same time.
    @Test(arguments: Backing.allCases)
    func concurrentTransfersKeepTheSum(_ backing: Backing) async throws {
        let (collections, database) = try await Self.open(backing)
        let overdrawn = Counter()
        try await withThrowingTaskGroup { group in
            for payer in 0..<4 {
                group.addTask {
                    for number in 0..<25 {
                        let payee = (payer + 1 + number % 3) % 4
                        do {
                            let amount = 1 + number % 30
                            let rest = try await Self.transfer(amount, from: payer, to: payee, number, in: database)
                            #expect(rest >= 0)
                        } catch is Overdrawn {
                            overdrawn.value.add(1, ordering: .relaxed)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let balances = try await database.repository("accounts", of: Account.self).fetchAll().map(\.balance)
        #expect(balances.reduce(0, +) == 400 && balances.allSatisfy { $0 >= 0 })
        let transfers = try await database.repository("transfers", of: Transfer.self).count()
        #expect(transfers == 100 - overdrawn.value.load(ordering: .relaxed))
        _ = collections
    }

    /// What was read is a condition, be it there or not, be it written or not.
    @Test(arguments: Backing.allCases, Event.allCases)
    func dependsOnWhatItHasRead(_ backing: Backing, _ event: Event) async throws {
        let (collections, database) = try await Self.open(backing)
        let accounts = database.repository("accounts", of: Account.self)
        let attempts = Counter()
        try await database.transaction { transaction in
            let attempt = attempts.value.add(1, ordering: .relaxed).newValue
            let inside = transaction.collection("accounts", of: Account.self)
            let first = try await inside.read(id: 0).balance
            let other = try await inside.find(id: 1)?.balance
            let third = try await inside.find(id: 9)?.balance
            if attempt == 1 {
                switch event {
                case .changes: try await accounts.modify(id: 0) { $0.balance += 1 }
                case .goes: try await accounts.delete(id: 1)
                case .comes: try await accounts.create(Account(id: 9, balance: 5))
                }
            }
            try inside.upsert(Account(id: 3, balance: first + (other ?? 1000) + (third ?? 0)))
        }
        #expect(attempts.value.load(ordering: .relaxed) == 2)
        let expected =
            switch event {
            case .changes: 201
            case .goes: 1100
            case .comes: 205
            }
        #expect(try await accounts.read(id: 3).balance == expected)
        _ = collections
    }

    /// Without a write, too: both reads are of one moment.
    @Test(arguments: Backing.allCases)
    func severalReadsAreOfOneMoment(_ backing: Backing) async throws {
        let (collections, database) = try await Self.open(backing)
        let accounts = database.repository("accounts", of: Account.self)
        let attempts = Counter()
        let sum = try await database.transaction { transaction in
            let inside = transaction.collection("accounts", of: Account.self)
            let first = try await inside.read(id: 0).balance
            if attempts.value.add(1, ordering: .relaxed).newValue == 1 {
                _ = try await Self.transfer(10, from: 0, to: 1, 0, in: database)
            }
            return first + (try await inside.read(id: 1).balance)
        }
        #expect(sum == 200 && attempts.value.load(ordering: .relaxed) == 2)
        // A record that has two revisions in one attempt ends it at once.
        attempts.value.store(0, ordering: .relaxed)
        try await database.transaction { transaction in
            let inside = transaction.collection("accounts", of: Account.self)
            let first = try await inside.read(id: 2)
            if attempts.value.add(1, ordering: .relaxed).newValue == 1 {
                try await accounts.modify(id: 2) { $0.balance += 1 }
            }
            #expect(try await inside.read(id: 2) == first)
        }
        #expect(attempts.value.load(ordering: .relaxed) == 2)
        _ = collections
    }

    @Test(arguments: Backing.allCases)
    func endsWithTheErrorOfItsBody(_ backing: Backing) async throws {
        let (collections, database) = try await Self.open(backing)
        let accounts = database.repository("accounts", of: Account.self)
        let before = try await accounts.fetchAll()
        await #expect(throws: Overdrawn.self) { try await Self.transfer(101, from: 0, to: 1, 0, in: database) }
        await expectError(.recordNotFound) { try await Self.transfer(1, from: 0, to: 17, 0, in: database) }
        // The third write, though five records were read before.
        let exists = await expectError(.recordExists) {
            try await database.transaction { transaction in
                let inside = transaction.collection("accounts", of: Account.self)
                for id in 0..<5 { _ = try await inside.find(id: id) }
                try inside.upsert(Account(id: 0, balance: 0))
                try inside.delete(id: 1)
                try inside.create(Account(id: 2, balance: 0))
            }
        }
        #expect(exists?.details.index == 2)
        // Its own writes are not there yet.
        let error = await expectError(.invalidParams) {
            try await database.transaction { transaction in
                let inside = transaction.collection("accounts", of: Account.self)
                try inside.update(Account(id: 0, balance: 0))
                _ = try await inside.read(id: 0)
            }
        }
        #expect(error?.message.contains("read it before") == true)
        #expect(try await accounts.fetchAll() == before)
        #expect(try await database.transaction { _ in 7 } == 7)
        let invalid = await expectError(.invalidParams) {
            try await database.transaction { transaction in
                try transaction.collection("accounts", of: Account.self).delete(id: "x")
            }
        }
        #expect(invalid?.details.member == "id")
        _ = collections
    }

    @Test(arguments: Backing.allCases)
    func retriesOnlyIfItShall(_ backing: Backing) async throws {
        let (collections, database) = try await Self.open(backing)
        let accounts = database.repository("accounts", of: Account.self)
        func interfered(retrying: Bool) async throws {
            try await database.transaction(retryingConflicts: retrying) { transaction in
                let inside = transaction.collection("accounts", of: Account.self)
                let account = try await inside.read(id: 0)
                try await accounts.modify(id: 0) { $0.balance += 1 }
                try inside.update(account)
            }
        }
        await expectError(.revisionMismatch) { try await interfered(retrying: false) }
        let error = await #expect(throws: CRUDError.self) {
            try await CRUDClient.withDeadline(in: .milliseconds(300)) { try await interfered(retrying: true) }
        }
        // The deadline may pass while a write of the body has been sent.
        #expect(error?.cause is DeadlineExceeded && [.timedOut, .outcomeUnknown].contains(error?.code))
        _ = collections
    }
}
