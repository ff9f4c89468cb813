import CRUDInMemory
import CRUDTestSupport
import Foundation
import Testing

/// Records that expire.
@Suite(.timeLimit(.minutes(1))) struct ExpiryTests {
    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }

    @Test(arguments: Backing.allCases)
    func everyWriteDeterminesTheExpiry(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        let ada = User(id: "ada", name: "Ada", age: 36)
        func lifetime() async throws -> Double? {
            try await users.readVersioned(id: "ada").expiresAt?.timeIntervalSinceNow
        }
        func expectLifetime(_ seconds: Double?, sourceLocation: SourceLocation = #_sourceLocation) async throws {
            let lifetime = try await lifetime()
            #expect((lifetime == nil) == (seconds == nil), sourceLocation: sourceLocation)
            guard let lifetime, let seconds else { return }
            #expect(abs(lifetime - seconds) < 50, sourceLocation: sourceLocation)
        }
        try await users.create(ada, expiresIn: .seconds(100))
        try await expectLifetime(100)
        try await users.patch(id: "ada", with: ["age": 37])
        try await users.persist(ada)
        try await users.modify(id: "ada") { $0.age += 1 }
        try await expectLifetime(100)
        try await users.patch(id: "ada", with: ["age": 37], expiresIn: .seconds(200))
        try await expectLifetime(200)
        try await users.patch(id: "ada", with: ["age": 37], expiresIn: nil)
        try await expectLifetime(nil)
        try await users.persist(ada, expiresIn: .seconds(300))
        try await expectLifetime(300)
        try await users.update(ada)
        try await expectLifetime(nil)
        try await users.upsert(ada, expiresIn: .milliseconds(400_500))
        try await expectLifetime(400)
        try await users.transaction { try $0.update(ada, expiresIn: .seconds(500)) }
        try await expectLifetime(500)
        try await users.transaction { try $0.patch(id: "ada", with: ["age": 1], expiresIn: nil) }
        try await expectLifetime(nil)
        try await users.transaction { try $0.persist(ada, expiresIn: .seconds(600)) }
        try await expectLifetime(600)
        #expect(try await users.store.query(RecordQuery(), as: User.self).records.first?.expiresAt != nil)
        try await users.upsert(ada)
        try await expectLifetime(nil)
        let revision = try await users.touch(id: "ada", expiresIn: .seconds(700))
        try await expectLifetime(700)
        #expect(try await users.readVersioned(id: "ada").revision == revision)
        #expect(try await users.readVersioned(id: "ada").item == ada)
        await #expect(throws: CRUDError.self) {
            try await users.touch(id: "ada", expiresIn: nil, ifRevision: Revision("no such revision"))
        }
        try await users.touch(id: "ada", expiresIn: nil, ifRevision: revision)
        try await expectLifetime(nil)
        await #expect(throws: CRUDError.self) { try await users.touch(id: "bob", expiresIn: nil) }
    }

    @Test(arguments: Backing.allCases)
    func anInstantIsTakenOver(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        let instant = Date(timeIntervalSince1970: 4_102_444_800.123)
        let one = try EncodedItem(1)
        for (index, action) in [
            RecordOperation.Action.create(one), .update(one), .upsert(one), .patch(try EncodedItem(["a": 1])),
        ].enumerated() {
            let expiry = instant + Double(index) / 1000
            try await store.transaction([RecordOperation(action, id: "x", expiry: .at(expiry))])
            let kept = try #require(try await store.readVersioned(id: "x", as: Anything.self).expiresAt)
            #expect((kept.timeIntervalSince1970 * 1000).rounded() == (expiry.timeIntervalSince1970 * 1000).rounded())
        }
        let past = Expiry.at(Date(timeIntervalSince1970: 1))
        let outcomes = try await store.transaction([
            RecordOperation(.upsert(one), id: "x", expiry: past), RecordOperation(.create(one), id: "x", expiry: past),
        ])
        #expect(outcomes.allSatisfy { $0.revision != nil })
        #expect(try await !store.exists(id: "x"))
        for date in [Date.distantPast, Date(timeIntervalSince1970: 1e12), Date(timeIntervalSince1970: .nan)] {
            let error = await expectError(.invalidParams) {
                try await store.batch([RecordOperation(.create(one), id: "y", expiry: .at(date))])
            }
            #expect(error?.details.member == "expiresAt")
        }
    }

    @Test(arguments: Backing.allCases)
    func refusesLifetimesThatAreNone(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        for duration in [Duration.zero, .seconds(-1), .seconds(36_526 * 86_400), .seconds(Int64.max)] {
            let error = await expectError(.invalidParams) {
                try await store.create(id: "x", item: 1, expiresIn: duration)
            }
            #expect(error?.details.member == "ttl")
        }
        // The shortest one is a millisecond.
        try await store.create(id: "x", item: 1, expiresIn: .nanoseconds(1))
    }

    @Test(arguments: Backing.allCases)
    func aFollowerIsToldOfAnExpiry(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let store = collections.store("c")
        let page = try await store.changes(ChangeQuery(after: .now))
        try await store.create(id: "x", item: 1, expiresIn: .milliseconds(200))
        var changes = store.changes(after: page.cursor).makeAsyncIterator()
        if case .saved(let record) = try await changes.next()?.kind {
            #expect(record.expiresAt != nil)
            guard case .removed("x") = try await changes.next()?.kind else { throw Failure("not removed") }
        }
        #expect(try await store.exists(id: "x") == false)
        try await store.create(id: "x", item: 2)
    }

    /// At its instant, and not before, a record is gone for every method.
    @Test func expiresByTheClock() async throws {
        let clock = ManualClock()
        let database = InMemoryDatabase(clock: clock)
        let users = database.repository("users", of: User.self)
        let first = try await users.create(User(id: "ada", name: "Ada", age: 36), expiresIn: .seconds(60))
        try await users.create(User(id: "bob", name: "Bob", age: 20), expiresIn: .seconds(90))
        clock.advance(by: .milliseconds(59_999))
        #expect(try await users.read(id: "ada").age == 36)
        #expect(try await users.count() == 2)

        var changes = users.changes().makeAsyncIterator()
        #expect(try await [changes.next()?.id, changes.next()?.id] == ["ada", "bob"])
        let next = Task { [changes] in
            var changes = changes
            return try await changes.next()
        }
        clock.advance(by: .milliseconds(1))
        let removed = try await next.value
        guard case .removed("ada") = removed?.kind else { throw Failure("not removed") }
        #expect(try await users.exists(id: "ada") == false)
        #expect(try await users.read(ids: ["ada", "bob"]).map(\.id) == ["bob"])
        #expect(try await users.fetchAll().map(\.id) == ["bob"])
        #expect(try await users.count() == 1)
        await expectError(.recordNotFound) { try await users.update(User(id: "ada", name: "", age: 0)) }
        await expectError(.recordNotFound) { try await users.delete(id: "ada", ifRevision: first) }
        await expectError(.recordNotFound) { try await users.patch(id: "ada", with: ["age": 1]) }
        await expectError(.recordNotFound) {
            try await users.transaction { $0.check(id: "ada", revision: first) }
        }
        #expect(try await users.create(User(id: "ada", name: "Ada", age: 1)) != first)
        clock.advance(by: .seconds(1000))
        #expect(try await users.fetchAll().map(\.id) == ["ada"])
    }

    /// One that knows nothing of expiry and changes itself.
    @Test func expiresInAStoreThatWrapsAnother() async throws {
        let clock = ManualClock()
        let store: any RecordStore = RivalledStore(base: InMemoryRepository(clock: clock))
        for (id, lifetime) in [("a", 1), ("b", 2)] {
            try await store.create(id: id, item: [id: id], expiresIn: .seconds(lifetime))
        }
        try await store.update(id: "a", item: ["a": "a"], ifRevision: nil, expiresIn: .seconds(3))
        try await store.upsert(id: "c", item: ["c": "c"], ifRevision: nil, expiresIn: .seconds(4))
        let patched = try await store.patch(id: "c", with: ["d": "d"], expiresIn: nil, as: [String: String].self)
        #expect(patched == ["c": "c", "d": "d"])
        for expected in [["a", "b", "c"], ["a", "c"], ["c"], ["c"]] {
            clock.advance(by: .seconds(1))
            #expect(try await store.query(RecordQuery(), as: [String: String].self).records.map(\.id) == expected)
        }
        await expectError(.recordExists) { try await store.create(id: "c", item: 1, expiresIn: .seconds(1)) }
        await expectError(.unsupported) { try await store.changes(ChangeQuery()) }
    }

    @Test func anEmptyPageEndsItsWaitByTheClock() async throws {
        let clock = ManualClock()
        let store = InMemoryRepository(clock: clock)
        let page = Task { try await store.changes(ChangeQuery(wait: .seconds(30))) }
        // Whenever the request comes, its time passes afterwards.
        let time = Task {
            while !Task.isCancelled {
                clock.advance(by: .seconds(31))
                await Task.yield()
            }
        }
        #expect(try await page.value.changes.isEmpty)
        time.cancel()
    }
}
