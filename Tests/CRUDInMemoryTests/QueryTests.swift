import CRUDInMemory
import CRUDTestSupport
import Foundation
import Testing

/// Typed queries and what they select.
@Suite struct QueryTests {
    static let day = 86_400.0

    static let users: [User] = [
        User(
            id: "ada", name: "Ada", age: 36, balance: 10.5, nickname: "Countess", isAdmin: true,
            tags: ["math", "engine"], scores: [1, 2], address: Address(city: "London")),
        User(
            id: "bea", name: "Bea", age: 17, joined: Date(timeIntervalSinceReferenceDate: 800_000_000 + day),
            status: .dormant, tags: ["50%"],
            address: Address(city: "Paris", position: Address.Position(latitude: 48.85))),
        User(id: "bob", name: "Bob", age: 18, balance: -3, nickname: "", scores: []),
        User(
            id: "cem", name: "çem", age: Int.max, joined: Date(timeIntervalSinceReferenceDate: 800_000_000.5),
            tags: ["math"], address: Address(city: "Paris")),
    ]

    private func open(_ backing: Backing) async throws -> (Repository<User>, Collections) {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        for user in Self.users.shuffled() { try await users.create(user) }
        return (users, collections)
    }

    @Test(arguments: Backing.allCases)
    func readsPartsOfTheItems(_ backing: Backing) async throws {
        struct Part: Decodable, Hashable {
            struct Address: Decodable, Hashable { let city: String? }
            let name: String
            let address: Address?
            let age: Int?
        }
        let (users, collections) = try await open(backing)
        let query = Query<User> { $0.age > 17 }.sorted(by: \.age, .descending)
        let parts = try await users.fetch(query.selecting(\.name, \.address.city), as: Part.self)
        #expect(
            parts == [
                Part(name: "çem", address: Part.Address(city: "Paris"), age: nil),
                Part(name: "Ada", address: Part.Address(city: "London"), age: nil),
                Part(name: "Bob", address: nil, age: nil),
            ])
        var whole: [Int?] = []
        for try await part in users.records(query.limited(to: 2), as: Part.self) { whole.append(part.age) }
        #expect(whole == [Int.max, 36])
        withExtendedLifetime(collections) {}
    }

    /// What takes long with one item ends at the deadline. Before, it came to its end, after a minute.
    @Test func aLongEvaluationIsStopped() async throws {
        struct Text: Codable, Sendable { let text: String }
        let texts = InMemoryRepository()
        _ = try await texts.create(id: "a", item: Text(text: String(repeating: "a", count: 1 << 20)))
        let pattern = String(repeating: "a_", count: 400)
        let filter = try Filter(
            cql2Text: (0..<100).map { "text LIKE '%\(pattern)b\($0)%'" }.joined(separator: " OR "))
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await texts.count(RecordSelection(filter: filter)) },
            { _ = try await texts.query(RecordQuery(RecordSelection(filter: filter)), as: Text.self) },
            { _ = try await texts.deleteMatching(RecordSelection(filter: filter)) },
            { _ = try await texts.changes(ChangeQuery(RecordSelection(filter: filter), after: .start)) },
        ]
        for call in calls {
            let error = await #expect(throws: CRUDError.self) {
                try await CRUDClient.withDeadline(in: .milliseconds(50)) { try await call() }
            }
            #expect(error?.cause is DeadlineExceeded)
        }
        #expect(try await texts.exists(id: "a"))
    }

    @Test(arguments: Backing.allCases)
    func explainsAQuery(_ backing: Backing) async throws {
        let (users, collections) = try await open(backing)
        let plan = try await users.explain(Query { $0.age > 17 })
        #expect(plan == QueryPlan(index: nil, sort: "id", scanned: 4))
        #expect(try await users.explain(Query().sorted(by: \.age)).sort == "host")
        withExtendedLifetime(collections) {}
    }

    static let conditions: [(@Sendable (User.Properties) -> Condition<User>, String)] = [
        ({ $0.age >= 18 && $0.name.like("B%") }, "bob"),
        ({ $0.age == 18 }, "bob"),
        ({ $0.age != 18 }, "ada bea cem"),
        ({ $0.age < 18 || $0.age > 36 }, "bea cem"),
        ({ $0.age <= 18 }, "bea bob"),
        ({ $0.age == Int.max }, "cem"),
        ({ $0.age.between(18, 36) }, "ada bob"),
        ({ $0.age.in([17, 36, 99]) }, "ada bea"),
        ({ $0.age.in([]) }, ""),
        ({ !($0.name == "Ada") }, "bea bob cem"),
        ({ $0.name > "Bob" }, "cem"),
        ({ $0.name.like("_e_") || $0.name.like("%m") }, "bea cem"),
        ({ $0.balance == 10.5 }, "ada"),
        ({ $0.balance < 0 }, "bob"),
        ({ $0.nickname == nil }, "bea cem"),
        ({ $0.nickname != nil }, "ada bob"),
        ({ $0.nickname.isNull }, "bea cem"),
        ({ $0.nickname == "" }, "bob"),
        ({ $0.nickname != "" }, "ada"),
        ({ $0.nickname.like("C%") }, "ada"),
        ({ $0.nickname >= "A" }, "ada"),
        ({ $0.isAdmin == true }, "ada"),
        ({ $0.status == .dormant }, "bea"),
        ({ $0.status.in([.active]) }, "ada bob cem"),
        ({ $0.joined > Date(timeIntervalSinceReferenceDate: 800_000_000) }, "bea cem"),
        ({ $0.joined <= Date(timeIntervalSinceReferenceDate: 800_000_000.5) }, "ada bob cem"),
        ({ $0.tags.contains("math") }, "ada cem"),
        ({ $0.tags.contains(all: ["engine", "math"]) }, "ada"),
        ({ $0.tags.contains("50%") && !$0.isAdmin.isNull }, "bea"),
        ({ $0.scores.contains(2) }, "ada"),
        ({ $0.scores == nil }, "bea cem"),
        ({ $0.address.city == "Paris" }, "bea cem"),
        ({ $0.address.position.latitude > 1 }, "bea"),
        ({ $0.address == nil }, "bob"),
        ({ $0.address.city.isNull }, "bob"),
        ({ $0.device == UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)) }, "ada bea bob cem"),
        ({ _ in Condition(.constant(false)) }, ""),
    ]

    @Test(arguments: Backing.allCases)
    func selects(_ backing: Backing) async throws {
        let (users, collections) = try await open(backing)
        for (index, (condition, ids)) in Self.conditions.enumerated() {
            let found = try await users.fetch(condition)
            #expect(found.map(\.id).joined(separator: " ") == ids, "condition \(index)")
            #expect(try await users.count(condition) == found.count, "condition \(index)")
            #expect(try await users.first(condition) == found.first, "condition \(index)")
        }
        withExtendedLifetime(collections) {}
    }

    @Test(arguments: Backing.allCases)
    func sortsAndLimits(_ backing: Backing) async throws {
        let (users, collections) = try await open(backing)
        func ids(_ query: Query<User>) async throws -> String {
            try await users.fetch(query).map(\.id).joined(separator: " ")
        }
        #expect(try await ids(Query()) == "ada bea bob cem")
        #expect(try await ids(Query().sorted(by: \.age)) == "bea bob ada cem")
        #expect(try await ids(Query().sorted(by: \.age, .descending).limited(to: 2)) == "cem ada")
        #expect(try await ids(Query().sorted(by: \.nickname)) == "bea cem bob ada")
        #expect(try await ids(Query().sorted(by: \.nickname, .descending)) == "ada bob bea cem")
        #expect(try await ids(Query().sorted(by: \.address.city, .descending).sorted(by: \.age)) == "bea cem ada bob")
        #expect(try await ids(Query().sorted(by: \.address.position.latitude, .descending)) == "bea ada cem bob")
        #expect(try await ids(Query().withIDs(startingWith: "b")) == "bea bob")
        #expect(try await ids(Query().limited(to: 0)) == "")
        let adults = Query<User> { $0.age >= 18 }.sorted(by: \.name, .descending)
        #expect(try await users.first(adults)?.id == "cem")
        #expect(try await users.first(adults.limited(to: 0)) == nil)
        #expect(try await users.count(adults.limited(to: 2)) == 2)
        #expect(try await users.count() == 4)
        #expect(try await users.fetchAll().count == 4)
        withExtendedLifetime(collections) {}
    }

    @Test(arguments: Backing.allCases)
    func removesWhatIsSelected(_ backing: Backing) async throws {
        let (users, collections) = try await open(backing)
        await expectError(.invalidQuery) { try await users.removeAll(Query().limited(to: 1)) }
        await expectError(.invalidParams) { try await users.removeAll(Query()) }
        await expectError(.invalidParams) { try await users.removeAll(Query().withIDs(startingWith: "")) }
        let store = users.store
        for selection in [
            RecordSelection(prefix: ""), RecordSelection(filter: .constant(true)), RecordSelection(filter: .and([])),
            RecordSelection(filter: .not(.or([.constant(false)])), prefix: ""),
        ] {
            await expectError(.invalidParams) { try await store.deleteMatching(selection) }
        }
        #expect(try await users.removeAll { $0.tags.contains("math") } == 2)
        #expect(try await users.fetchAll().map(\.id) == ["bea", "bob"])
        #expect(try await users.removeAll(Query().withIDs(startingWith: "bo")) == 1)
        #expect(try await users.removeAll() == 1)
        #expect(try await users.removeAll() == 0)
        #expect(try await users.first() == nil)
        withExtendedLifetime(collections) {}
    }

    @Test(arguments: Backing.allCases)
    func pagesUnderneath(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("numbers")
        let numbers = Repository<Int>(store)
        for start in stride(from: 0, to: 2500, by: 500) {
            try await store.batch(
                try (start..<start + 500).map { RecordOperation(.create(try EncodedItem($0)), id: "\($0)") })
        }
        var seen: Set<Int> = []
        for try await number in numbers.records() { #expect(seen.insert(number).inserted) }
        #expect(seen.count == 2500)
        #expect(try await numbers.fetch(Query().limited(to: 1700)).count == 1700)

        var page = try await store.query(RecordQuery(limit: 3), as: Int.self)
        #expect(page.records.map(\.id) == ["0", "1", "10"])
        let cursor = try #require(page.next)
        page = try await store.query(RecordQuery(limit: 2, cursor: cursor), as: Int.self)
        #expect(page.records.map(\.id) == ["100", "1000"])
        let prefixed = RecordQuery(RecordSelection(prefix: "1"), cursor: cursor)
        await expectError(.invalidQuery) { try await store.query(prefixed, as: Int.self) }
        await expectError(.invalidQuery) {
            try await store.query(RecordQuery(cursor: Cursor("nonsense")), as: Int.self)
        }
    }

    /// The daemon leaves the item out then.
    @Test(arguments: Backing.allCases)
    func anItemOfNoFieldsIsAnEmptyObject(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let store = collections.store("bare")
        try await store.create(id: "a", item: ["n": 1])
        try await store.create(id: "b", item: 7)
        let page = try await store.query(RecordQuery(fields: []), as: [String: Int].self)
        #expect(page.records.map(\.id) == ["a", "b"])
        #expect(page.records.map(\.item) == [[:], [:]])
        let changes = try await store.changes(ChangeQuery(fields: [])).changes
        let items = try changes.map { change throws -> [String: Int]? in
            guard case .saved(let record) = change else { return nil }
            return try record.item.decoded()
        }
        #expect(items == [[:], [:]])
    }

    @Test(arguments: Backing.allCases)
    func aQueryOutlivesWrites(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let numbers = collections.repository("numbers", of: Int.self)
        try await numbers.store.batch((0..<1000).map { RecordOperation(.create(try EncodedItem($0)), id: "k\($0)") })
        try await numbers.store.batch((0..<500).map { RecordOperation(.create(try EncodedItem(-$0)), id: "m\($0)") })
        var seen: [Int] = []
        for try await number in numbers.records() {
            seen.append(number)
            // Deletes what was seen, and stores something before it.
            if seen.count == 1000 {
                #expect(try await numbers.removeAll(Query().withIDs(startingWith: "k")) == 1000)
                try await numbers.create(-1000, id: "a")
            }
        }
        #expect(seen.filter { $0 > 0 }.count == 999)
        #expect(Set(seen).count == 1499)
        #expect(!seen.contains(-1000))
    }

    /// An administrator may allow shorter pages than the client asks for.
    @Test func readsAsMuchAsItShallInPagesOfAnySize() async throws {
        let daemon = try Daemon(Configuration(limits: "query_limit: 5"))
        let numbers = Repository<Int>(try await CRUDClient.connect(path: daemon.socketPath).repository("numbers"))
        for number in 10..<30 { try await numbers.create(number, id: "\(number)") }
        let twelve = Query<Int>().limited(to: 12)
        #expect(try await numbers.fetch(twelve) == Array(10..<22))
        #expect(try await numbers.fetchAll() == Array(10..<30))
        #expect(try await numbers.first() == 10)
        #expect(try await numbers.explain(twelve).scanned < 12)
    }

    @Test func endsAfterAnInvalidQuery() async throws {
        let users = Repository<User>(InMemoryRepository())
        var records = users.records { $0.address.position.latitude == .nan }.makeAsyncIterator()
        await #expect(throws: EncodingError.self) { try await records.next() }
        #expect(try await records.next() == nil)
    }

    @Test(arguments: Backing.allCases)
    func throwsForWhatMeansNothing(_ backing: Backing) async throws {
        let (users, collections) = try await open(backing)
        await expectError(.invalidQuery) { try await users.fetch { $0.name.like(#"50\x"#) } }
        await #expect(throws: EncodingError.self) {
            try await users.fetch { $0.address.position.latitude == .infinity }
        }
        await #expect(throws: EncodingError.self) {
            try await users.count { $0.age == 1 && ($0.address.position.latitude < .nan || !$0.isAdmin.isNull) }
        }
        await #expect(throws: EncodingError.self) {
            try await users.removeAll { !$0.address.position.latitude.in([.nan]) }
        }
        #expect(try await users.count() == 4)
        withExtendedLifetime(collections) {}
    }
}
