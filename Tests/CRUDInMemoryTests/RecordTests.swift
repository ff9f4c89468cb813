import CRUDInMemory
import CRUDTestSupport
import Foundation
import Testing

/// Single records, by way of the untyped store and of the typed repository.
@Suite struct RecordTests {
    @Test(arguments: Backing.allCases)
    func keepsRecords(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let repository: any CRUDRepository = collections.store("Clients Database")
        let first = try await repository.create(id: "x", item: ["name": "Chill Client"])
        var record = try await repository.readVersioned(id: "x", as: [String: String].self)
        #expect(record.item == ["name": "Chill Client"])
        #expect(record.revision == first)
        await expectError(.recordExists) { try await repository.create(id: "x", item: 1) }

        record.item["name"] = "Busy Client"
        let second = try await repository.update(id: "x", item: record.item, ifRevision: first)
        #expect(second != first)
        let mismatch = await expectError(.revisionMismatch) { try await repository.delete(id: "x", ifRevision: first) }
        #expect(mismatch?.details.revision == second.text)

        try await repository.delete(id: "x", ifRevision: second)
        #expect(try await repository.exists(id: "x") == false)
        await expectError(.recordNotFound) { try await repository.read(id: "x", as: Int.self) }
        await expectError(.recordNotFound) { try await repository.update(id: "x", item: 1) }
        await expectError(.recordNotFound) { try await repository.delete(id: "x") }
        await expectError(.recordNotFound) { try await repository.update(id: "x", item: 1, ifRevision: second) }

        let third = try await repository.upsert(id: "x", item: [1, 2])
        #expect(third != second)
        #expect(try await repository.upsert(id: "x", item: [3]) != third)
        #expect(try await repository.read(id: "x") == [3])
        await #expect(throws: DecodingError.self) { try await repository.read(id: "x", as: String.self) }
    }

    @Test(arguments: Backing.allCases)
    func doesNothingAfterTheDeadline(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        let error = await expectError(.timedOut) {
            try await CRUDClient.withDeadline(in: .zero) { try await store.create(id: "x", item: 1) }
        }
        #expect(error?.cause is DeadlineExceeded)
        #expect(try await store.exists(id: "x") == false)
    }

    @Test(arguments: Backing.allCases)
    func upsertsConditionally(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        let none = await expectError(.revisionMismatch) {
            try await store.upsert(id: "x", item: 1, ifRevision: Revision("no such"))
        }
        #expect(none?.details.revision == nil)
        let revision = try await store.upsert(id: "x", item: 1, ifRevision: nil)
        let other = await expectError(.revisionMismatch) {
            try await store.upsert(id: "x", item: 2, ifRevision: Revision("no such"))
        }
        #expect(other?.details.revision == revision.text)
        try await store.upsert(id: "x", item: 3, ifRevision: revision)
        #expect(try await store.read(id: "x") == 3)
    }

    @Test(arguments: Backing.allCases)
    func patches(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        let patch = try EncodedItem(json: #"{"a":null,"b":{"c":1},"d":[null]}"#)
        func apply(ifRevision: Revision? = nil, upsert: Bool = false) async throws -> Versioned<[String: JSONProbe]> {
            try await store.patch(
                id: "x", with: patch, ifRevision: ifRevision, upsert: upsert, as: [String: JSONProbe].self)
        }
        await expectError(.recordNotFound) { try await apply() }
        await expectError(.recordNotFound) { try await apply(ifRevision: Revision("7")) }
        await expectError(.revisionMismatch) { try await apply(ifRevision: Revision("7"), upsert: true) }

        let created = try await apply(upsert: true)
        #expect(created.item == ["b": .object(["c": .number]), "d": .array])
        try await store.update(id: "x", item: ["a": ["e": 1], "b": ["f": 2], "g": ["h": 3]])
        let patched = try await apply(upsert: true)
        #expect(
            patched.item == ["b": .object(["f": .number, "c": .number]), "d": .array, "g": .object(["h": .number])])
        #expect(patched.revision == (try await store.readVersioned(id: "x", as: JSONProbe.self)).revision)
        await expectError(.revisionMismatch) { try await apply(ifRevision: created.revision) }
        #expect(try await apply(ifRevision: patched.revision).revision != patched.revision)
    }

    @Test(arguments: Backing.allCases)
    func readsMany(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        // Two ids that String takes for one, and one that looks like a path.
        for (number, id) in ["\u{E9}", "e\u{301}", "../../etc/passwd"].enumerated() {
            try await store.create(id: id, item: number)
        }
        let records = try await store.readVersioned(
            ids: ["../../etc/passwd", "none", "e\u{301}", "\u{E9}", "e\u{301}"], as: Int.self)
        #expect(records.map(\.item) == [2, 1, 0])
        #expect(records.map { Array($0.id.utf8) } == ["../../etc/passwd", "e\u{301}", "\u{E9}"].map { Array($0.utf8) })
        #expect(try await store.read(ids: [], as: Int.self) == [])
    }

    /// Before, more than a thousand were an error.
    @Test(arguments: Backing.allCases)
    func readsMoreThanABatch(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        for part in [0..<1000, 1000..<2000, 2000..<2500] {
            try await store.batch(part.map { RecordOperation(.create(try EncodedItem($0)), id: "\($0)") })
        }
        // In an order of its own, with records that are not there, and some twice, in one part and in two.
        let numbers = (0..<2600).reversed() + [7, 2400, 7]
        let records = try await store.readVersioned(ids: numbers.map(String.init), as: Int.self)
        #expect(records.map(\.item) == (0..<2500).reversed())
        #expect(records.map(\.id) == (0..<2500).reversed().map(String.init))
        let invalid = await expectError(.invalidParams) {
            try await store.read(ids: (0..<1500).map(String.init) + [""], as: Int.self)
        }
        #expect(invalid?.details.member == "ids")
    }

    /// Neither the number of ids nor the records fit into what the daemon allows.
    @Test func readsMoreThanTheDaemonAllows() async throws {
        let daemon = try Daemon(Configuration(limits: "batch: 10\nframe_bytes: 256KiB"))
        let store = try await CRUDClient.connect(path: daemon.socketPath).repository("c")
        for number in 0..<25 { try await store.create(id: "\(number)", item: String(repeating: "x", count: 60 << 10)) }
        let records = try await store.readVersioned(ids: (0..<30).map(String.init) + ["3"], as: String.self)
        #expect(records.map(\.id) == (0..<25).map(String.init))
    }

    @Test(arguments: Backing.allCases)
    func refusesWhatTheProtocolRefuses(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        for id in ["", "a\u{0}", "a\u{7F}", "\n", String(repeating: "x", count: 513)] {
            let error = await expectError(.invalidParams) { try await store.create(id: id, item: 1) }
            #expect(error?.details.member == "id")
            let several = await expectError(.invalidParams) { try await store.read(ids: ["a", id], as: Int.self) }
            #expect(several?.details.member == "ids")
        }
        try await store.create(id: String(repeating: "x", count: 512), item: 1)
        for name in ["", "\u{1F}", String(repeating: "c", count: 129)] {
            let error = await expectError(.invalidParams) { try await collections.store(name).exists(id: "x") }
            #expect(error?.details.member == "collection")
        }
        let item = await expectError(.limitExceeded) {
            try await store.create(id: "long", item: String(repeating: "x", count: 4 << 20))
        }
        #expect(item?.details.limit == "item_bytes")
        for limit in [0, -1] {
            let error = await expectError(.invalidParams) {
                try await store.query(RecordQuery(limit: limit), as: Int.self)
            }
            #expect(error?.details.member == "limit")
        }
        let page = await expectError(.limitExceeded) {
            try await store.query(RecordQuery(limit: 10_001), as: Int.self)
        }
        #expect(page?.details.limit == "query_limit")
    }

    @Test(arguments: Backing.allCases)
    func honoursCancellation(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("c")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await store.create(id: "x", item: 1)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try await store.exists(id: "x") == false)
    }

    @Test(arguments: Backing.allCases)
    func keepsModels(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        var ada = User(
            id: "ada", name: "Ada", age: 36, balance: try #require(Decimal(string: "12345678901234567890.5")))
        ada.joined = Date(timeIntervalSinceReferenceDate: 800_000_000.123_456_7)
        ada.address = Address(city: "Łódź")
        let first = try await users.create(ada)
        #expect(try await users.read(id: "ada") == ada)
        await expectError(.recordExists) { try await users.create(ada) }
        ada.nickname = "A"
        let second = try await users.update(ada, ifRevision: first)
        await expectError(.revisionMismatch) { try await users.update(ada, ifRevision: first) }
        let read = try await users.readVersioned(id: "ada")
        #expect(read.item == ada)
        #expect(read.revision == second)
        let bob = User(id: "bob", name: "Bob", age: 20)
        try await users.upsert(bob)
        #expect(try await users.read(ids: ["bob", "none", "ada"]) == [bob, ada])
        try await users.delete(id: "ada")
        #expect(try await users.exists(id: "ada") == false)
        await expectError(.revisionMismatch) { try await users.delete(id: "bob", ifRevision: second) }
    }

    struct Product: Codable, Equatable, Identifiable, Queryable {
        var id: UUID
        var name = ""

        struct Properties {
            let name = Property(\Product.name, CodingKeys.name)
        }
        static let properties = Properties()
    }

    struct Note: Codable, Equatable, Identifiable {
        var id: Int
        var text = ""
    }

    /// Before, a `uuidString` was another id than its `UUID`, and any text was one of a model with numbers as ids.
    @Test(arguments: Backing.allCases)
    func idsHaveTheTypeOfTheModel(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let products = collections.repository("products", of: Product.self)
        let product = Product(id: UUID())
        try await products.create(product)
        for text in [product.id.uuidString, product.id.uuidString.lowercased()] {
            #expect(try await products.read(id: text) == product)
            #expect(try await products.readVersioned(id: text).id == product.id.recordID)
            #expect(try await products.read(ids: [text]) == [product])
            #expect(try await products.exists(id: text))
            try await products.update(product, id: text)
            try await products.upsert(product, id: text)
            #expect(try await products.apply(id: text, upsert: true) { _ in } == product)
            try await products.touch(id: text, expiresIn: nil)
            #expect(try await products.patch(id: text, with: ["name": ""]) == product)
            try await products.modify(id: text) { $0.name = "" }
            try await products.transaction { products in
                try products.patch(id: text, with: ["name": ""])
                products.apply(id: text) { _ in }
                products.delete(id: text)
                products.check(id: text, revision: nil)
                try products.create(product, id: text)
            }
        }
        #expect(try await products.count() == 1)
        try await products.delete(id: product.id.uuidString)

        let notes = collections.repository("notes", of: Note.self)
        try await notes.create(Note(id: 3))
        #expect(try await notes.read(id: "3") == Note(id: 3))
        #expect(try await notes.read(id: UInt8(3)) == Note(id: 3))
        let calls: [() async throws -> Void] = [
            { _ = try await notes.read(id: "abc") }, { _ = try await products.read(id: "abc") },
            { _ = try await notes.exists(id: UUID()) }, { try await notes.create(Note(id: 4), id: "four") },
            { try await notes.modify(id: "abc") { $0.text = "" } }, { try await notes.delete(id: "3 ") },
            { _ = try await notes.read(ids: ["3", "abc"]) },
        ]
        for call in calls {
            let error = await expectError(.invalidParams) { try await call() }
            #expect(error?.details.member == "id")
        }
        let error = await expectError(.invalidParams) {
            try await notes.transaction { notes in
                notes.delete(id: 3)
                notes.collection("products", of: Product.self) { $0.check(id: "x", revision: nil) }
            }
        }
        #expect(error?.details.index == 1)
        #expect(error?.message.contains("UUID") == true)
        #expect(try await notes.fetchAll() == [Note(id: 3)])
    }

    /// Before, record 3 had the id 33 in its item afterwards.
    @Test(arguments: Backing.allCases)
    func aModificationLeavesTheIDAlone(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let notes = collections.repository("notes", of: Note.self)
        let revision = try await notes.create(Note(id: 3))
        let error = await expectError(.invalidParams) {
            try await notes.modify(id: 3) { note in
                note.id = 33
                note.text = "x"
            }
        }
        #expect(error?.details.member == "id")
        #expect(try await notes.readVersioned(id: 3).revision == revision)
        #expect(try await notes.fetchAll() == [Note(id: 3)])
    }

    /// A model whose id has a text of its own.
    struct Order: Codable, Equatable, Identifiable {
        struct Number: Codable, Hashable, LosslessStringConvertible, RecordIDConvertible {
            var value: Int

            init(value: Int) { self.value = value }

            init?(_ description: String) {
                guard description.hasPrefix("A"), let value = Int(description.dropFirst()) else { return nil }
                self.value = value
            }

            var description: String { "A\(value)" }
            var recordID: String { "order/\(value)" }
        }

        var id: Number
    }

    @Test(arguments: Backing.allCases)
    func anIDHasTheTextOfItsType(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let orders = collections.repository("orders", of: Order.self)
        let order = Order(id: Order.Number(value: 7))
        try await orders.create(order)
        #expect(try await orders.read(id: order.id) == order)
        #expect(try await orders.read(id: "order/7") == order)
        #expect(try await orders.read(id: "A7") == order)
    }

    @Test(arguments: Backing.allCases)
    func keepsModelsWithoutAnID(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let numbers = collections.repository("numbers", of: [Int].self)
        try await numbers.create([1], id: 17)
        try await numbers.update([2], id: "17")
        #expect(try await numbers.read(id: Int8(17)) == [2])
        #expect(try await numbers.modify(id: 17) { $0.append(3) } == [2, 3])
    }
}

/// The shape of an item, numbers and the like left out.
enum JSONProbe: Decodable, Equatable {
    case object([String: JSONProbe])
    case array, number, other

    init(from decoder: any Decoder) throws {
        if let object = try? [String: JSONProbe](from: decoder) {
            self = .object(object)
        } else if (try? decoder.unkeyedContainer()) != nil {
            self = .array
        } else if (try? Double(from: decoder)) != nil {
            self = .number
        } else {
            self = .other
        }
    }
}

/// Expects a CRUDError with that code.
@discardableResult
func expectError<Result>(
    _ code: CRUDError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ call: () async throws -> Result
) async -> CRUDError? {
    do {
        let result = try await call()
        Issue.record("no error but \(result)", sourceLocation: sourceLocation)
    } catch let error as CRUDError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
    return nil
}
