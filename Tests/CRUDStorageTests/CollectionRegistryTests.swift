import CRUDModel
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// One object for each collection of a backend, whose layout the configuration says.
@Suite struct CollectionRegistryTests {
    private func rules(_ indexes: [String]) throws -> CollectionRules {
        try CollectionRules([CollectionRule("*", indexes: indexes)])
    }

    private func name(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func whoeverAsksGetsTheSameObject() throws {
        let backend = try IndexedBackend().backend
        let one = backend.collection(name("c"), .json)
        #expect(backend.collection(name("c"), .json) === one)
        #expect(backend.collection(name("c"), .xml) !== one && backend.collection(name("d"), .json) !== one)
        #expect(backend.collectionCount == 1, "nobody uses the others")
    }

    /// Names that clients ask for in vain leave nothing behind, nor do dropped collections.
    @Test func whatNobodyUsesIsForgotten() throws {
        let test = try IndexedBackend()
        for number in 0..<100 {
            let collection = test.backend.collection(name("\(number)"), .json)
            try test.write([.put("a", "1")], in: collection)
        }
        #expect(test.backend.collectionCount == 100, "they are open")
        for number in 0..<100 {
            #expect(try test.backend.drop(name("\(number)"), within: .seconds(30)))
            try test.open(test.backend.collection(name("none \(number)"), .json))
        }
        // The last one may be in the batch that has just been delivered, and upkeep has a list of its own for a moment.
        let deadline = Deadline()
        while test.backend.collectionCount > 1 {
            try #require(!deadline.hasPassed, "\(test.backend.collectionCount)")
            try test.open(test.backend.collection(name("none"), .json))
        }
    }

    /// A write that is on its way when the file changes the indexes: its keys would stand in the wrong ones.
    @Test func keysOfAnotherLayoutAreLeftOut() throws {
        let test = try IndexedBackend()
        test.backend.follow(try rules(["n", "name"]))
        let clients = test.backend.collection(name("clients"), .json)
        let item = #"{"n":1,"name":"Ada"}"#
        try test.write([.put("a", item)], in: clients)
        try test.wait { clients.indexes?.usable.count == 2 }
        let inbox = try Inbox<WorkItem>()
        let late = MutationBatch { inbox.put($0) }
        late.append(.put("b", item), in: clients)

        test.backend.follow(try rules(["name", "n"]))
        #expect(!clients.isCurrent)
        test.backend.submit(.write(late))
        _ = try inbox.take()
        #expect(clients.isCurrent, "the writer has told the plugin")
        let indexes = try #require(clients.indexes)
        #expect(indexes.paths.map(\.text) == ["name", "n"])
        for index in 0..<2 {
            #expect(try test.ids(index, equal: item, in: clients).contains("a"))
            let unkeyed = try test.ids(RecordScan(.unkeyed(index: index)), in: clients)
            let keyed = try test.ids(RecordScan(.key(index: index)), in: clients)
            #expect(Set(unkeyed + keyed) == ["a", "b"])
            #expect(try unkeyed.contains("b") || test.ids(index, equal: item, in: clients).contains("b"), "\(index)")
        }
        try test.write([.put("c", item)], in: clients)
        #expect(try test.ids(0, equal: item, in: clients).contains("c"))
    }

    @Test func howLongRemovalsAreRememberedIsNotToldToThePlugin() throws {
        let collection = collection("c", indexes: ["n"])
        let number = collection.layoutNumber
        collection.layout.retention = .seconds(10)
        #expect(collection.layoutNumber != number, "it has a feed now")
        let second = collection.layoutNumber
        collection.layout.retention = .seconds(20)
        #expect(collection.layoutNumber == second && collection.layout.retention == .seconds(20))
    }
}
