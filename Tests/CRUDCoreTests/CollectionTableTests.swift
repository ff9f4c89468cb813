import CRUDConfiguration
import CRUDCore
import CRUDPluginHost
import Testing

/// Collections by name, as one event loop knows them.
@Suite struct CollectionTableTests {
    /// The collection of that name, as a request spells it.
    private func find(_ name: String, in table: inout CollectionTable) -> Collection? {
        table.collection(named: Array(name.utf8).span)
    }

    @Test func findsTheSameCollectionAgain() throws {
        var table = CollectionTable(rules: try rules(#""*": {backend: main}"#), backends: try backends("main"))
        let found = try #require(find("clients", in: &table))
        #expect(found.name == Array("clients".utf8))
        #expect(found.stored.name == found.name)
        #expect(!found.stored.isOpen)
        #expect(find("clients", in: &table) === found)
        for other in ["client", "clientss", "Clients", "clients ", "snetilc", ""] {
            #expect(find(other, in: &table) !== found)
        }
    }

    @Test func rulesDecideWhereACollectionLives() throws {
        let rules = try rules(
            #"clients: {backend: other, format: xml, indexes: [name]}, "cl*": {backend: main}, "c*": {backend: other}"#)
        var table = CollectionTable(rules: rules, backends: try backends("main", "other"))
        let clients = try #require(find("clients", in: &table))
        #expect(clients.backend.name == "other")
        #expect(clients.backendIndex == 1)
        #expect(clients.rule.format == .xml)
        #expect(clients.stored.format == "xml")
        #expect(clients.stored.indexes == ["name"])
        // Of two globs the one with more of its own letters wins, whichever comes first.
        #expect(find("clients2", in: &table)?.backend.name == "main")
        #expect(find("clients2", in: &table)?.backendIndex == 0)
        #expect(find("cars", in: &table)?.backend.name == "other")
        #expect(find("dogs", in: &table) == nil)
    }

    @Test func growsWithItsCollections() throws {
        var table = CollectionTable(rules: try rules(#""*": {backend: main}"#), backends: try backends("main"))
        let names = (0..<3000).map { "collection \($0)" }
        let found = names.compactMap { find($0, in: &table) }
        #expect(found.count == names.count)
        for (name, collection) in zip(names, found) { #expect(find(name, in: &table) === collection) }
    }

    /// What a session has under way on a collection keeps its order by the collection's identity.
    @Test func goesOverToAnotherConfiguration() throws {
        let old = try backends("main", "other")
        var table = CollectionTable(
            rules: try rules(#""*": {backend: main}, gone: {backend: other}"#), backends: old)
        let (moved, kept) = (try #require(find("moved", in: &table)), try #require(find("kept", in: &table)))
        let (indexed, gone) = (try #require(find("indexed", in: &table)), try #require(find("gone", in: &table)))
        let (storedMoved, storedKept, storedIndexed) = (moved.stored, kept.stored, indexed.stored)
        let next = try rules(
            #"moved: {backend: other}, kept: {backend: main}, "i*": {backend: main, indexes: [x]}, "n*": {backend: main}"#
        )
        table.begin(CollectionHold(backends: [], rules: next))
        #expect([moved, kept, indexed, gone].map(\.isHeld) == [true, false, false, true])
        #expect(find("new", in: &table)?.isHeld == false)
        #expect(find("unmapped then", in: &table)?.isHeld == true)

        let new = [old[1], old[0]]
        table.serve(rules: next, backends: new)
        #expect(find("moved", in: &table) === moved)
        #expect(moved.backend === old[1] && moved.backendIndex == 0 && moved.stored !== storedMoved)
        #expect(find("kept", in: &table) === kept)
        #expect(kept.backend === old[0] && kept.backendIndex == 1 && kept.stored === storedKept)
        #expect(find("indexed", in: &table) === indexed)
        #expect(indexed.stored !== storedIndexed && indexed.stored.indexes == ["x"])
        #expect(find("gone", in: &table) == nil)
        #expect([moved, kept, indexed, gone].allSatisfy { !$0.isHeld })
    }

    @Test func holdsWhatLivesInABackendThatLeaves() throws {
        let backends = try backends("main", "other")
        let rules = try rules(#"a: {backend: main}, b: {backend: other}"#)
        var table = CollectionTable(rules: rules, backends: backends)
        table.begin(CollectionHold(backends: [backends[1]], rules: rules))
        #expect(find("a", in: &table)?.isHeld == false)
        #expect(find("b", in: &table)?.isHeld == true)
        table.serve(rules: rules, backends: backends)
        #expect(find("b", in: &table)?.isHeld == false)
    }

    /// A peer must not be able to fill the memory by asking for names; what is in use is not forgotten.
    @Test func forgetsWhatNobodyStoresAnythingIn() throws {
        let main = try backends("main")
        var table = CollectionTable(rules: try rules(#""*": {backend: main}"#), backends: main)
        let busy = try #require(find("busy", in: &table))
        busy.requestsUnderWay = 1
        let stored = try #require(find("stored", in: &table))
        try main[0].start { _ in }
        defer { main[0].stop() }
        let written = Handover<Bool>()
        let batch = MutationBatch { _ in written.give(true) }
        batch.append(
            Mutation(.put, in: stored.stored, id: batch.store([0x61].span), precondition: .any))
        main[0].submit(batch)
        #expect(written.wait() && stored.stored.isOpen)

        var seen: [WeakCollection] = []
        for number in 0..<20_000 {
            seen.append(WeakCollection(find("\(number)", in: &table)))
            guard number.isMultiple(of: 500) else { continue }
            seen.removeAll { $0.collection == nil }
            #expect(seen.count <= 4096)
        }
        #expect(find("busy", in: &table) === busy)
        #expect(find("stored", in: &table) === stored)
        #expect(find("0", in: &table)?.name == Array("0".utf8), "it is simply made anew")
    }

    private struct WeakCollection {
        weak var collection: Collection?

        init(_ collection: Collection?) {
            self.collection = collection
        }
    }
}
