import CRUDClient
import Foundation
import Synchronization
import Testing

/// The default implementations, in a repository that implements only the four required methods.
@Suite struct CRUDRepositoryTests {
    /// A minimal repository of a third party.
    final class Shelf: CRUDRepository {
        private struct Records {
            var texts: [[UInt8]: (text: Data, revision: Revision)] = [:]
            var writes = 0

            mutating func store(_ id: String, _ text: Data) -> Revision {
                writes += 1
                texts[Array(id.utf8)] = (text, Revision("\(writes)"))
                return Revision("\(writes)")
            }
        }

        private let records = Mutex(Records())

        func create<Item: Encodable>(id: String, item: Item) async throws -> Revision {
            let text = try JSONEncoder().encode(item)
            return try records.withLock { records in
                guard records.texts[Array(id.utf8)] == nil else { throw CRUDError(.recordExists, id) }
                return records.store(id, text)
            }
        }

        func readVersioned<Item: Decodable>(id: String, as type: Item.Type) async throws -> Versioned<Item> {
            guard let record = records.withLock({ $0.texts[Array(id.utf8)] }) else {
                throw CRUDError(.recordNotFound, id)
            }
            return Versioned(id: id, item: try JSONDecoder().decode(type, from: record.text), revision: record.revision)
        }

        func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) async throws -> Revision {
            let text = try JSONEncoder().encode(item)
            return try records.withLock { records in
                guard records.texts[Array(id.utf8)] != nil else { throw CRUDError(.recordNotFound, id) }
                return records.store(id, text)
            }
        }

        func delete(id: String, ifRevision: Revision?) async throws {
            guard records.withLock({ $0.texts.removeValue(forKey: Array(id.utf8)) }) != nil else {
                throw CRUDError(.recordNotFound, id)
            }
        }
    }

    @Test func upsertStoresWhetherTheRecordIsThereOrNot() async throws {
        let repository: any CRUDRepository = Shelf()
        #expect(try await repository.upsert(id: "x", item: 1) == Revision("1"))
        #expect(try await repository.upsert(id: "x", item: 2) == Revision("2"))
        #expect(try await repository.read(id: "x") == 2)
    }

    @Test func existsTellsWhateverTheItem() async throws {
        let repository: any CRUDRepository = Shelf()
        #expect(try await repository.exists(id: "x") == false)
        try await repository.create(id: "x", item: ["a": [1, 2]])
        #expect(try await repository.exists(id: "x"))
        try await repository.delete(id: "x")
        #expect(try await repository.exists(id: "x") == false)
    }

    @Test func readsManyInOrderAndEachOnce() async throws {
        let repository: any CRUDRepository = Shelf()
        // Two ids that are equal as Strings.
        try await repository.create(id: "\u{E9}", item: 1)
        try await repository.create(id: "e\u{301}", item: 2)
        try await repository.create(id: "z", item: 3)
        let items = try await repository.read(ids: ["z", "e\u{301}", "none", "\u{E9}", "z"], as: Int.self)
        #expect(items == [3, 2, 1])
    }

    @Test func updatesAndDeletesWhateverTheRevision() async throws {
        let repository: any CRUDRepository = Shelf()
        try await repository.create(id: "x", item: "a")
        try await repository.update(id: "x", item: "b")
        #expect(try await repository.read(id: "x", as: String.self) == "b")
        try await repository.delete(id: "x")
        let error = await #expect(throws: CRUDError.self) { try await repository.read(id: "x", as: String.self) }
        #expect(error?.code == .recordNotFound)
    }
}
