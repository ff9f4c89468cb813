import CRUDModel
import CRUDPluginHost
import CRUDTestSupport
import CRUDThreads
import Synchronization
import Testing

@testable import CRUDStorage

/// Collections by name, as one event loop knows them.
@Suite struct CollectionTableTests {
    private let loop: TestLoop

    init() throws { loop = try TestLoop() }

    private func clients(_ backends: [Backend]) -> [BackendClient] { backends.map { BackendClient($0, loop: loop) } }

    /// The collection of that name, as a request spells it.
    private func find(_ name: String, in table: inout CollectionTable) -> Collection? {
        table.collection(named: Array(name.utf8).span)
    }

    @Test func findsTheSameCollectionAgain() throws {
        var table = CollectionTable(
            rules: try CollectionRules([CollectionRule("*")]), clients: clients(try backends("main")))
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
        let rules = try CollectionRules([
            CollectionRule("clients", backend: "other", .xml, indexes: ["name"]), CollectionRule("cl*"),
            CollectionRule("c*", backend: "other"),
        ])
        let backends = try backends("main", "other")
        for backend in backends { backend.follow(rules) }
        let clients = clients(backends)
        var table = CollectionTable(rules: rules, clients: clients)
        let found = try #require(find("clients", in: &table))
        #expect(found.backend.name == "other")
        #expect(found.client === clients[1])
        #expect(found.rule.format == .xml)
        #expect(found.stored.format == .xml)
        #expect(found.stored.indexPaths.map(\.text) == ["name"])
        // Of two globs the one with more literal characters wins, whichever comes first.
        #expect(find("clients2", in: &table)?.client === clients[0])
        #expect(find("cars", in: &table)?.client === clients[1])
        #expect(find("dogs", in: &table) == nil)
    }

    @Test func growsWithItsCollections() throws {
        var table = CollectionTable(
            rules: try CollectionRules([CollectionRule("*")]), clients: clients(try backends("main")))
        let names = (0..<3000).map { "collection \($0)" }
        let found = names.compactMap { find($0, in: &table) }
        #expect(found.count == names.count)
        for (name, collection) in zip(names, found) { #expect(find(name, in: &table) === collection) }
    }

    // MARK: Reloads

    /// Requests in flight keep their order by the collection's identity.
    @Test func followsAnotherConfiguration() throws {
        let backends = try backends("main", "other")
        let old = clients(backends)
        let rules = try CollectionRules([CollectionRule("*"), CollectionRule("gone", backend: "other")])
        var table = CollectionTable(rules: rules, clients: old)
        let (moved, kept) = (try #require(find("moved", in: &table)), try #require(find("kept", in: &table)))
        let (indexed, gone) = (try #require(find("indexed", in: &table)), try #require(find("gone", in: &table)))
        let (storedMoved, storedKept, storedIndexed) = (moved.stored, kept.stored, indexed.stored)
        let next = try CollectionRules([
            CollectionRule("moved", backend: "other"), CollectionRule("kept"), CollectionRule("i*", indexes: ["x"]),
            CollectionRule("n*"),
        ])
        let concerned = table.quiesce(.changed(backends: [], from: rules, to: next, names: []))
        #expect(Set(concerned.map(\.backend.name)) == ["main", "other"])
        #expect([moved, kept, indexed, gone].map(\.isQuiesced) == [true, false, true, true])
        #expect(find("new", in: &table)?.isQuiesced == false)
        #expect(find("unmapped", in: &table)?.isQuiesced == true)

        for backend in backends { backend.follow(next) }
        table.serve(rules: next, clients: [old[1], old[0]])
        #expect(find("moved", in: &table) === moved)
        #expect(moved.client === old[1] && moved.stored !== storedMoved)
        #expect(find("kept", in: &table) === kept)
        #expect(kept.client === old[0] && kept.stored === storedKept)
        #expect(find("indexed", in: &table) === indexed)
        #expect(indexed.stored === storedIndexed && indexed.stored.indexPaths.map(\.text) == ["x"])
        #expect(find("gone", in: &table) == nil)
        #expect([moved, kept, indexed, gone].allSatisfy { !$0.isQuiesced })
    }

    @Test func quiescesCollectionsOfABackendThatLeaves() throws {
        let backends = try backends("main", "other")
        let clients = clients(backends)
        let rules = try CollectionRules([CollectionRule("a"), CollectionRule("b", backend: "other")])
        var table = CollectionTable(rules: rules, clients: clients)
        let quiesced = QuiescedCollections.changed(backends: [backends[1]], from: rules, to: rules, names: [])
        #expect(table.quiesce(quiesced).map(\.backend.name) == ["other"], "also where no collection of it is known")
        #expect(find("a", in: &table)?.isQuiesced == false)
        #expect(find("b", in: &table)?.isQuiesced == true)
        table.serve(rules: rules, clients: clients)
        #expect(find("b", in: &table)?.isQuiesced == false)
    }

    // MARK: Places

    /// Where a collection is served from is looked up when it is first used, and when what was quiesced is served
    /// again.
    @Test func collectionsAreServedFromWhereTheyAre() throws {
        let rules = try CollectionRules([CollectionRule("*", backend: "other")])
        let moved = Mutex(false)
        let clients = clients(try backends("main", "other"))
        var table = CollectionTable(rules: rules, clients: clients) { name, rule in
            let isHere = name == Array("b".utf8) || moved.withLock { $0 }
            return Serving(isHere ? rule.place : CollectionPlace(backend: "main", format: .xml))
        }
        let (a, b) = (try #require(find("a", in: &table)), try #require(find("b", in: &table)))
        #expect(a.client === clients[0] && a.stored.format == .xml && b.client === clients[1])
        #expect(table.quiesce(.one(a.name)).map(\.backend.name) == ["main"])
        moved.withLock { $0 = true }
        #expect(a.isQuiesced && find("a", in: &table)?.client === clients[0])
        let stored = b.stored
        table.serveQuiesced()
        #expect(!a.isQuiesced && a.client === clients[1] && a.rule.format == .json && b.stored === stored)
    }

    /// It is opened by an act of which no loop is told.
    @Test func aClosedCollectionIsLookedUpEachTime() throws {
        let reason = Mutex<String?>("it is being removed")
        var table = CollectionTable(
            rules: try CollectionRules([CollectionRule("*")]), clients: clients(try backends("main"))
        ) { _, rule in Serving(rule.place, closedReason: reason.withLock { $0 }) }
        let found = try #require(find("a", in: &table))
        #expect(found.closedReason != nil && find("a", in: &table)?.closedReason != nil)
        reason.withLock { $0 = nil }
        #expect(find("a", in: &table) === found && found.closedReason == nil)
    }

    // MARK: Work

    /// A drop, a switch and a reload of one line look at what they concern, however many collections there are.
    @Test(arguments: [10, 2000])
    func changesVisitWhatTheyConcern(count: Int) throws {
        let all = try backends("main", "other")
        let clients = clients(all)
        let rules = try CollectionRules([CollectionRule("*"), CollectionRule("many 1")])
        for backend in all { backend.follow(rules) }
        var table = CollectionTable(rules: rules, clients: clients)
        let found = try (0..<count).map { try #require(find("many \($0)", in: &table)) }
        #expect(table.quiesce(.one(found[1].name)).map(\.backend.name) == ["main"])
        #expect(found.filter(\.isQuiesced).map(\.name) == [found[1].name])
        table.serveQuiesced()
        #expect(table.visits == 2)

        let next = try CollectionRules([CollectionRule("*"), CollectionRule("many 1", backend: "other")])
        let stored = found.map(\.stored)
        for backend in all { backend.follow(next) }
        _ = table.quiesce(.changed(backends: [], from: rules, to: next, names: [found[2].name]))
        #expect(found.filter(\.isQuiesced).map(\.name) == [found[1].name, found[2].name])
        table.serve(rules: next, clients: clients)
        #expect(found[1].client === clients[1] && !found.contains(where: \.isQuiesced))
        #expect(table.visits <= 8)
        #expect(zip(found, stored).filter { $0.stored !== $1 }.count == 1, "no other object is made")
        #expect(all.map(\.visitsOfCollections).max() ?? 0 <= 2)

        // Without the rule that has its name, the glob maps it again.
        table.serve(rules: try CollectionRules([CollectionRule("*")]), clients: clients)
        #expect(found[1].client === clients[0] && find("many 1", in: &table) === found[1])
        #expect(table.visits <= 10)
    }

    /// A reload of a pattern's line looks at the collections that the pattern matches.
    @Test func aChangedPatternVisitsWhatItMatches() throws {
        let all = try backends("main", "other")
        let clients = clients(all)
        func rules(_ backend: String, _ indexes: [String] = []) throws -> CollectionRules {
            try CollectionRules([CollectionRule("*"), CollectionRule("few *", backend: backend, indexes: indexes)])
        }
        var former = try rules("main")
        for backend in all { backend.follow(former) }
        var table = CollectionTable(rules: former, clients: clients)
        let many = try (0..<500).map { try #require(find("many \($0)", in: &table)) }
        let few = try (0..<3).map { try #require(find("few \($0)", in: &table)) }
        for next in [try rules("main", ["n"]), try rules("other")] {
            let visits = (table: table.visits, backend: all[0].visitsOfCollections)
            for backend in all { backend.follow(next) }
            #expect(few[0].stored.layout.indexPaths.isEmpty == (next.rules[1].indexes.isEmpty))
            _ = table.quiesce(.changed(backends: [], from: former, to: next, names: []))
            #expect(few.allSatisfy(\.isQuiesced) && !many.contains(where: \.isQuiesced))
            table.serve(rules: next, clients: clients)
            #expect(few.filter(\.isQuiesced).isEmpty)
            // Each is quiesced, served again, and covered by the change.
            #expect(table.visits - visits.table <= 9)
            #expect(all[0].visitsOfCollections - visits.backend <= 3)
            former = next
        }
        #expect(few.allSatisfy { $0.client === clients[1] } && many.allSatisfy { $0.client === clients[0] })
    }

    /// A collection that no rule maps any more is forgotten, and one behind it in the table is found.
    @Test func whatNoRuleMapsIsForgotten() throws {
        let clients = clients(try backends("main"))
        let names = (0..<30).map { "name \($0)" }
        var table = CollectionTable(
            rules: try CollectionRules(names.map { try CollectionRule($0) }), clients: clients)
        let found = names.map { find($0, in: &table) }
        table.serve(rules: try CollectionRules(names.dropFirst().map { try CollectionRule($0) }), clients: clients)
        #expect(find(names[0], in: &table) == nil)
        for (name, collection) in zip(names, found).dropFirst() { #expect(find(name, in: &table) === collection) }
    }

    // MARK: Forgetting

    /// A peer must not be able to fill the memory by asking for names; what is in use is not forgotten.
    @Test func forgetsCollectionsThatHaveNeverBeenStored() throws {
        let main = try backends("main")
        var table = CollectionTable(rules: try CollectionRules([CollectionRule("*")]), clients: clients(main))
        let busy = try #require(find("busy", in: &table))
        busy.requestsInFlight = 1
        let stored = try #require(find("stored", in: &table))
        #expect(try main[0].startAndWait() == nil)
        defer { main[0].stop() }
        try main[0].write([.put("a")], in: stored.stored)
        #expect(stored.stored.isOpen)

        var seen: [WeakCollection] = []
        for number in 0..<20_000 {
            seen.append(WeakCollection(find("\(number)", in: &table)))
            guard number.isMultiple(of: 500) else { continue }
            seen.removeAll { $0.collection == nil }
            #expect(seen.count <= 4096)
        }
        #expect(find("busy", in: &table) === busy)
        #expect(find("stored", in: &table) === stored)
        #expect(find("0", in: &table)?.name == Array("0".utf8), "it is made again")
    }

    private struct WeakCollection {
        weak var collection: Collection?

        init(_ collection: Collection?) {
            self.collection = collection
        }
    }
}
