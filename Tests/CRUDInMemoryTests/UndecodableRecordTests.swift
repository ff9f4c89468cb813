import CRUDClient
import Synchronization
import Testing

/// Records that are not what the application expects, among others that are.
@Suite struct UndecodableRecordTests {
    private struct Person: Codable, Sendable, Equatable {
        var name: String
    }

    private final class Reports: Sendable {
        let all = Mutex<[UndecodableRecord]>([])

        var ids: [String] { all.withLock { $0.map(\.id) } }
    }

    /// Of the records a, b, c, d and e, those between b and d are no persons.
    private static func open(_ backing: Backing) async throws -> (Collections, Repository<Person>) {
        let collections = try await backing.open(changes: true)
        let store = collections.store("people")
        for id in ["a", "b", "c", "d", "e"] {
            if id == "a" || id == "e" {
                try await store.create(id: id, item: Person(name: id))
            } else {
                try await store.create(id: id, item: ["name": 1])
            }
        }
        return (collections, collections.repository("people", of: Person.self))
    }

    private static func names(_ error: (any Error)?, _ id: String) -> Bool {
        let text = String(describing: error as? DecodingError)
        return text.contains("people") && text.contains("record \"\(id)\"")
            || text.contains("people") && text.contains(#"record \"\#(id)\""#)
    }

    /// Before, the error named neither the collection nor the record.
    @Test(arguments: Backing.allCases)
    func anErrorNamesTheRecord(_ backing: Backing) async throws {
        let (collections, people) = try await Self.open(backing)
        var errors: [any Error] = []
        func expectError(_ body: () async throws -> Void) async {
            let error = await #expect(throws: DecodingError.self) { try await body() }
            if let error { errors.append(error) }
        }
        await expectError { _ = try await people.fetchAll() }
        await expectError { _ = try await people.read(id: "b") }
        await expectError { _ = try await people.read(ids: ["a", "b"]) }
        await expectError { for try await _ in people.changes() {} }
        await expectError { _ = try await collections.store("people").query(RecordQuery(), as: Person.self) }
        await expectError { try await people.modify(id: "b") { $0.name = "b" } }
        #expect(errors.count == 6)
        for error in errors { #expect(Self.names(error, "b"), "\(error)") }
    }

    /// Before, the page of the record was lost as a whole.
    @Test(arguments: Backing.allCases)
    func thoseBeforeItAreYielded(_ backing: Backing) async throws {
        let (collections, people) = try await Self.open(backing)
        var records = people.records().makeAsyncIterator()
        #expect(try await records.next() == Person(name: "a"))
        await #expect(throws: DecodingError.self) { try await records.next() }
        #expect(try await records.next() == nil)
        _ = collections
    }

    @Test(arguments: Backing.allCases)
    func reportsLeaveThemOut(_ backing: Backing) async throws {
        let (collections, people) = try await Self.open(backing)
        let reports = Reports()
        let lenient = people.reportingUndecodable { record in reports.all.withLock { $0.append(record) } }
        #expect(try await lenient.fetchAll().map(\.name) == ["a", "e"])
        #expect(reports.ids == ["b", "c", "d"])
        let first = try #require(reports.all.withLock { $0.first })
        #expect(first.collection == "people" && first.error is DecodingError)
        #expect(
            try await collections.store("people").readVersioned(id: "b", as: [String: Int].self).revision
                == first.revision)
        #expect("\(first)".hasPrefix(#"record "b" of collection "people" cannot be decoded: "#), "\(first)")
        // The limit is one of records that are there.
        #expect(try await lenient.fetch(Query().limited(to: 2)).map(\.name) == ["a", "e"])
        #expect(try await lenient.first(Query().withIDs(startingWith: "b")) == nil)
        #expect(try await lenient.read(ids: ["e", "c", "a"]).map(\.name) == ["e", "a"])
    }

    /// Before, a feed ended at the record, and began again in front of it.
    @Test(arguments: Backing.allCases)
    func aFeedContinuesBehindThem(_ backing: Backing) async throws {
        let (collections, people) = try await Self.open(backing)
        let reports = Reports()
        let lenient = people.reportingUndecodable { record in reports.all.withLock { $0.append(record) } }
        var changes = lenient.changes().makeAsyncIterator()
        #expect(try await changes.next()?.id == "a")
        let last = try await changes.next()
        #expect(last?.id == "e" && reports.ids == ["b", "c", "d"])
        // A page that ends with such a record.
        try await collections.store("people").update(id: "d", item: 7)
        let writer = Task {
            while reports.ids.count < 4 { try await Task.sleep(for: .milliseconds(1)) }
            try await people.update(Person(name: "f"), id: "d")
        }
        let next = try await changes.next()
        #expect(next?.id == "d" && reports.ids == ["b", "c", "d", "d"])
        try await writer.value
        // The same page by page.
        var pages = lenient.changePages(limit: 3).makeAsyncIterator()
        let page = try await pages.next()
        #expect(page?.changes.map(\.id) == ["a"] && reports.ids.suffix(2) == ["b", "c"])
        var strict = people.changePages().makeAsyncIterator()
        await #expect(throws: DecodingError.self) { try await strict.next() }
        reports.all.withLock { $0.removeLast(2) }
        var again = lenient.changes(after: try #require(last?.cursor)).makeAsyncIterator()
        #expect(try await again.next()?.id == "d")
        #expect(reports.ids.count == 4)
    }
}
