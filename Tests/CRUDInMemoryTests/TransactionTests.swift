import CRUDInMemory
import Testing

/// Batches and transactions.
@Suite struct TransactionTests {
    struct Account: Codable, Equatable, Identifiable, Sendable {
        var id: Int
        var balance: Int
        var note: String?
    }

    struct Transfer: Codable, Equatable, Sendable {
        var amount: Int
    }

    @Test(arguments: Backing.allCases)
    func doesAllOrNothing(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let accounts = collections.repository("accounts", of: Account.self)
        let transfers = collections.repository("transfers", of: Transfer.self)
        let one = try await accounts.create(Account(id: 1, balance: 10))
        try await accounts.create(Account(id: 2, balance: 0, note: "n"))
        let revisions = try await accounts.transaction { accounts in
            try accounts.update(Account(id: 1, balance: 7), ifRevision: one)
            try accounts.persist(Account(id: 2, balance: 3))
            accounts.check(id: 3, revision: nil)
            try accounts.collection("transfers", of: Transfer.self) { try $0.create(Transfer(amount: 3), id: "t") }
        }
        #expect(revisions.map { $0 == nil } == [false, false, true, false])
        #expect(try await accounts.readVersioned(id: 1).revision == revisions[0])
        #expect(
            try await accounts.fetchAll() == [Account(id: 1, balance: 7), Account(id: 2, balance: 3, note: "n")])
        #expect(try await transfers.read(id: "t") == Transfer(amount: 3))

        // Each of these fails at its third operation, after two that would have taken effect.
        let failures: [(CRUDError.Code, (inout Transaction<Account>) throws -> Void)] = [
            (.recordExists, { try $0.create(Account(id: 2, balance: 9)) }),
            (.recordNotFound, { try $0.update(Account(id: 4, balance: 9)) }),
            (.recordNotFound, { $0.delete(id: 4) }),
            (.recordNotFound, { try $0.patch(id: 4, with: ["balance": 9]) }),
            (.revisionMismatch, { try $0.update(Account(id: 2, balance: 9), ifRevision: one) }),
            (.revisionMismatch, { $0.delete(id: 2, ifRevision: one) }),
            (.revisionMismatch, { try $0.upsert(Account(id: 4, balance: 9), ifRevision: one) }),
            (.revisionMismatch, { $0.check(id: 2, revision: one) }),
            (.revisionMismatch, { $0.check(id: 2, revision: nil) }),
            (.recordNotFound, { $0.check(id: 4, revision: one) }),
            (.invalidParams, { $0.delete(id: "") }),
        ]
        let before = try await accounts.fetchAll()
        for (code, failure) in failures {
            let error = await expectError(code) {
                try await accounts.transaction { accounts in
                    try accounts.create(Account(id: 9, balance: 9))
                    try accounts.persist(Account(id: 1, balance: 9))
                    try failure(&accounts)
                    accounts.delete(id: 2)
                }
            }
            #expect(error?.details.index == 2)
            #expect(try await accounts.fetchAll() == before)
        }
        #expect(try await accounts.transaction { _ in } == [])
    }

    @Test(arguments: Backing.allCases)
    func aTransactionSeesItsOwnWrites(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let accounts = collections.repository("accounts", of: Account.self)
        try await accounts.transaction { accounts in
            try accounts.create(Account(id: 1, balance: 1, note: "n"))
            try accounts.patch(id: 1, with: ["balance": 2])
            try accounts.create(Account(id: 2, balance: 1))
            accounts.delete(id: 2)
            accounts.check(id: 2, revision: nil)
        }
        #expect(try await accounts.fetchAll() == [Account(id: 1, balance: 2, note: "n")])
    }

    @Test(arguments: Backing.allCases)
    func aBatchGoesOnAfterAFailure(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        let results = try await store.batch([
            RecordOperation(.create(EncodedItem(1)), id: "a"),
            RecordOperation(.create(EncodedItem(2)), id: "a"),
            RecordOperation(.check(nil), id: "b"),
            RecordOperation(.upsert(EncodedItem(["n": 3])), id: "b", in: "d"),
            RecordOperation(.patch(EncodedItem(["m": 4])), id: "b", in: "d"),
            RecordOperation(.delete(), id: "nobody"),
        ])
        let codes = results.map { result -> CRUDError.Code? in
            if case .failure(let error) = result { error.code } else { nil }
        }
        #expect(codes == [nil, .recordExists, nil, nil, nil, .recordNotFound])
        #expect(try await store.read(id: "a") == 1)
        #expect(try await collections.store("d").read(id: "b") == ["n": 3, "m": 4])
        #expect(try results[4].get().item?.decoded(as: [String: Int].self) == ["n": 3, "m": 4])
        #expect(try results[0].get().revision == (try await store.readVersioned(id: "a", as: Int.self)).revision)
        #expect(try results[2].get().revision == nil)

        let malformed = [
            RecordOperation(.delete(), id: "a"), RecordOperation(.create(try EncodedItem(1)), id: "\u{1}"),
        ]
        let error = await expectError(.invalidParams) { try await store.batch(malformed) }
        #expect(error?.details.index == 1)
        #expect(try await store.exists(id: "a"))
        let many = [RecordOperation](repeating: RecordOperation(.check(nil), id: "x"), count: 1001)
        #expect(await expectError(.limitExceeded) { try await store.batch(many) }?.details.limit == "batch")
    }
}
