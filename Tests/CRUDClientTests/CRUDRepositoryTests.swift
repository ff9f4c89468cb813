import CRUDClient
import Foundation
import Testing

/// What a repository gets that implements the four methods and nothing else.
@Suite struct CRUDRepositoryTests {
    /// The least that a third party can write.
    actor Shelf: CRUDRepository {
        private var records: [[UInt8]: (text: Data, revision: Int)] = [:]
        private var writes = 0

        func create<Item: Encodable>(id: String, item: Item) throws -> Revision {
            guard records[Array(id.utf8)] == nil else { throw CRUDError(.recordExists, id) }
            return try store(id, item)
        }

        func readVersioned<Item: Decodable>(id: String, as type: Item.Type) throws -> Versioned<Item> {
            let record = try record(id)
            return Versioned(
                id: id, item: try JSONDecoder().decode(type, from: record.text),
                revision: Revision("\(record.revision)"))
        }

        func update<Item: Encodable>(id: String, item: Item, ifRevision: Revision?) throws -> Revision {
            _ = try record(id)
            return try store(id, item)
        }

        func delete(id: String, ifRevision: Revision?) throws {
            _ = try record(id)
            records[Array(id.utf8)] = nil
        }

        private func record(_ id: String) throws -> (text: Data, revision: Int) {
            guard let record = records[Array(id.utf8)] else { throw CRUDError(.recordNotFound, id) }
            return record
        }

        private func store(_ id: String, _ item: some Encodable) throws -> Revision {
            writes += 1
            records[Array(id.utf8)] = (try JSONEncoder().encode(item), writes)
            return Revision("\(writes)")
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
        // Two ids that String takes for one.
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
