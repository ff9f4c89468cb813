import CRUDModel
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// Collections that are dropped.
@Suite struct CollectionDropTests {
    private func drop(_ name: String, of backend: Backend) throws(CRUDError) -> Bool {
        try backend.drop(Array(name.utf8), within: .seconds(30))
    }

    /// All objects of the collection find nothing, and its indexes are those of the next collection of that name.
    @Test func everybodyFindsNothingThen() throws {
        let indexed = try IndexedBackend()
        let (one, other) = (collection("c", indexes: ["n"]), collection("c", indexes: ["n"]))
        try indexed.write([.put("a", #"{"n":1}"#), .put("b", #"{"n":2}"#)], in: one)
        try indexed.open(other)
        #expect(try indexed.ids(RecordScan(.id), in: other) == ["a", "b"])
        let indexes = try #require(one.indexes)
        #expect(try drop("c", of: indexed.backend))
        #expect(!one.isOpen && !other.isOpen && one.indexes == nil)
        #expect(indexes.generation > 0, "searches that use them cannot continue")
        try indexed.open(other)
        #expect(try indexed.ids(RecordScan(.id), in: other).isEmpty)
        #expect(try !drop("c", of: indexed.backend))
        try indexed.write([.put("a", #"{"n":3}"#)], in: one)
        try indexed.open(other)
        #expect(try indexed.ids(RecordScan(.id), in: other) == ["a"])
    }

    /// The scripted plugin cannot: the records stay.
    @Test func whatCannotBeDroppedStays() throws {
        let test = try TestBackend.opened()
        let clients = collection()
        try test.write(.put("a", "1"), in: clients)
        #expect { try drop("c", of: test.backend) } throws: { ($0 as? CRUDError)?.code == .unsupported }
        #expect(try test.read(["a"], in: clients) == .records(["1@r"]))
        #expect(try !test.backend.remove(clients.name, in: .json, isShared: false, within: .seconds(30)))
        #expect(try test.backend.remove(clients.name, in: .json, isShared: false, within: .seconds(30)))
        #expect(!clients.isOpen, "what is created next is admitted first")
        #expect(test.plugin[.violations] == 0)
    }

    @Test func aBackendThatIsDownDropsNothing() throws {
        let test = try TestBackend.opened()
        test.plugin.report(isUp: false)
        #expect { try drop("c", of: test.backend) } throws: { ($0 as? CRUDError)?.code == .unavailable }
    }
}
