import CRUDInMemory
import CRUDTestSupport
import Foundation
import Synchronization
import Testing

/// `modify`, and its rivals.
@Suite struct ModifyTests {
    struct Counter: Codable, Equatable, Sendable {
        var count = 0
        var note: String?
        var parts: [String: Int] = [:]
    }

    @Test func sixtyFourTasksCountTogether() async throws {
        try await countTogether(in: try await Backing.inMemory.open(), tasks: 64, rounds: 100)
    }

    /// One backend after the other, as each takes what the machine has.
    @Test func manyTasksCountTogetherOnEveryBackend() async throws {
        let options = [
            "sqlite": "{path: $DIRECTORY/$NAME.sqlite}", "filesystem": "{directory: $DIRECTORY/$NAME}",
            "userdefaults": "{suite: $NAME}", "memory": "{}",
        ]
        let backends = options.keys.sorted().flatMap { plugin in ["inline", "process"].map { (plugin, $0) } }
        let daemon = try Daemon(
            Configuration(
                backends: backends.map { plugin, isolation in
                    let name = "\(plugin)-\(isolation)"
                    let options = options[plugin, default: ""].replacing("$NAME", with: name)
                    return "\(name): {plugin: \(plugin), isolation: \(isolation), options: \(options)}"
                }.joined(separator: "\n"),
                collections: backends.map { "\($0)-\($1): {backend: \($0)-\($1)}" }.joined(separator: "\n")))
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        for (plugin, isolation) in backends {
            let store = client.repository("\(plugin)-\(isolation)")
            let (tasks, rounds) = plugin == "sqlite" && isolation == "inline" ? (64, 20) : (32, 10)
            try await countTogether(in: Collections(keeper: daemon) { _ in store }, tasks: tasks, rounds: rounds)
        }
    }

    private func countTogether(in collections: Collections, tasks: Int, rounds: Int) async throws {
        let counters = collections.repository("counters", of: Counter.self)
        try await counters.create(Counter(), id: "x")
        try await withThrowingTaskGroup { group in
            for task in 0..<tasks {
                group.addTask {
                    for _ in 0..<rounds {
                        try await counters.modify(id: "x") { counter in
                            counter.count += 1
                            counter.parts["\(task)", default: 0] += 1
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let counter = try await counters.read(id: "x")
        #expect(counter.count == tasks * rounds)
        #expect(counter.parts.count == tasks)
        #expect(counter.parts.values.allSatisfy { $0 == rounds })
    }

    @Test(arguments: Backing.allCases)
    func keepsWhatTheModelDoesNotKnow(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("counters")
        let item = try EncodedItem(json: #"{"count":1,"note":"n","parts":{"a":1,"b":2},"more":{"digits":1.50}}"#)
        try await store.batch([RecordOperation(.create(item), id: "x")])
        let counters = Repository<Counter>(store)
        let changed = try await counters.modify(id: "x") { counter in
            counter.count = 2
            counter.note = nil
            counter.parts["a"] = nil
            counter.parts["c"] = 3
        }
        #expect(changed == Counter(count: 2, note: nil, parts: ["b": 2, "c": 3]))
        struct More: Codable, Equatable {
            var more: [String: Decimal]
            var note: String?
        }
        #expect(try await store.read(id: "x") == More(more: ["digits": 1.5], note: nil))
    }

    @Test(arguments: Backing.allCases)
    func writesNothingWhereNothingChanges(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let counters = collections.repository("counters", of: Counter.self)
        let revision = try await counters.create(Counter(count: 1, parts: ["a": 1, "b": 2]), id: "x")
        #expect(try await counters.modify(id: "x") { $0.count = 1 }.count == 1)
        #expect(try await counters.readVersioned(id: "x").revision == revision)
        await expectError(.recordNotFound) { try await counters.modify(id: "y") { $0.count = 1 } }
        await #expect(throws: CancellationError.self) {
            try await counters.modify(id: "x") { counter in
                counter.count = 7
                throw CancellationError()
            }
        }
        #expect(try await counters.readVersioned(id: "x").revision == revision)
    }

    /// A plain nil removes a member, and so does a Field that is null; one that is absent does not.
    @Test(arguments: Backing.allCases)
    func keepsWhatIsMadeAbsent(_ backing: Backing) async throws {
        struct Status: Codable, Equatable {
            @Field var text: String? = nil
            @Field var since: Int? = nil
        }
        struct Person: Codable, Equatable {
            @Field var name: String? = nil
            @Field var age: Int? = nil
            var status: Status?
            var nickname: String?
        }
        let collections = try await backing.open()
        let people = collections.repository("people", of: Person.self)
        let ada = Person(name: "Ada", age: 36, status: Status(text: "here", since: 1843), nickname: "A")
        let revision = try await people.create(ada, id: "ada")
        let same = try await people.modify(id: "ada") { person in
            person.$name = .absent
            person.status?.$text = .absent
        }
        #expect(same == ada)
        #expect(try await people.readVersioned(id: "ada").revision == revision)
        let changed = try await people.modify(id: "ada") { person in
            person.$name = .absent
            person.age = nil
            person.status?.$text = .absent
            person.status?.since = nil
            person.nickname = nil
        }
        #expect(changed == Person(name: "Ada", status: Status(text: "here")))
        // What is removed as a whole does not keep a part of itself.
        #expect(try await people.modify(id: "ada") { $0.status = nil } == Person(name: "Ada"))
    }

    /// A store in which somebody else is always quicker.
    @Test func givesUpAtTheDeadline() async throws {
        let store = InMemoryRepository()
        let counters = Repository<Counter>(RivalledStore(base: store))
        try await counters.create(Counter(), id: "x")
        let error = await expectError(.timedOut) {
            try await CRUDClient.withDeadline(in: .milliseconds(30)) {
                try await counters.modify(id: "x") { $0.count += 1 }
            }
        }
        #expect(error?.cause is DeadlineExceeded)
        #expect(try await counters.read(id: "x").count == 0)
    }
}

/// Changes a record between every read and the write that follows.
struct RivalledStore: RecordStore {
    let base: InMemoryRepository

    var collection: String { base.collection }

    func patch<Item: Decodable>(
        id: String, with patch: EncodedItem, ifRevision: Revision?, upsert: Bool, as type: Item.Type
    ) async throws -> Versioned<Item> {
        try await base.patch(id: id, with: ["note": "rival"], as: ModifyTests.Counter.self)
        return try await base.patch(id: id, with: patch, ifRevision: ifRevision, upsert: upsert, as: type)
    }

    func create<Item: Encodable>(id: String, item: Item) async throws -> Revision {
        try await base.create(id: id, item: item)
    }

    func readVersioned<Item: Decodable>(id: String, as type: Item.Type) async throws -> Versioned<Item> {
        try await base.readVersioned(id: id, as: type)
    }

    func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
        try await base.update(id: id, item: item, ifRevision: ifRevision)
    }

    func upsert<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
        try await base.upsert(id: id, item: item, ifRevision: ifRevision)
    }

    func delete(id: String, ifRevision: Revision?) async throws {
        try await base.delete(id: id, ifRevision: ifRevision)
    }

    func query<Item: Decodable>(_ query: RecordQuery, as type: Item.Type) async throws -> RecordPage<Item> {
        try await base.query(query, as: type)
    }

    func count(_ selection: RecordSelection) async throws -> Int { try await base.count(selection) }

    func deleteMatching(_ selection: RecordSelection) async throws -> Int { try await base.deleteMatching(selection) }

    func batch(_ operations: [RecordOperation]) async throws -> [Result<RecordOutcome, CRUDError>] {
        try await base.batch(operations)
    }

    func transaction(_ operations: [RecordOperation]) async throws -> [RecordOutcome] {
        try await base.transaction(operations)
    }
}
