import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDTestSupport
import Testing

/// What is made of the names of all collections, as they come, go and move.
@Suite struct NameListingTests {
    private let state: StateDirectory

    init() throws { state = try StateDirectory() }

    private static func write(_ name: [UInt8], to list: inout JSONWriter) { list.string(utf8: name) }

    private static func text(_ listing: NameListing) -> String {
        listing.texts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
    }

    private func catalog(_ count: Int) throws -> Catalog {
        let catalog = try state.open()
        try catalog.commit(
            (0..<count).map { .init(Array("many \($0)".utf8), from: .none, to: Placement(.resident(.main))) })
        return catalog
    }

    /// A change has the names visited that are near it, however many there are.
    @Test(arguments: [100, 10_000])
    func aChangeVisitsOnePart(count: Int) throws {
        let catalog = try catalog(count)
        let others = [Array("a".utf8), Array("many 5".utf8), Array("z".utf8)]
        var listing = NameListing()
        listing.follow(catalog.names, others: others, element: Self.write)
        #expect(listing.visits == count + 2)
        for (name, placement) in [
            ("many 50", Placement(.absent)), ("another", Placement(.resident(.main))),
            ("many 7", Placement(.resident(.other))), ("many 50", Placement(.resident(.main))),
        ] {
            let before = listing.visits
            try catalog.set(name, placement)
            listing.follow(catalog.names, others: others, element: Self.write)
            let visits = listing.visits - before
            #expect((1...Catalog.Names.maximumPart + 3).contains(visits), "\(name): \(visits)")
            listing.follow(catalog.names, others: others, element: Self.write)
            #expect(listing.visits == before + visits, "nothing has changed")
        }
        let next = try (0..<3).map { try state.open().names.parts[0].names[$0] }
        #expect(next.map { String(decoding: $0, as: UTF8.self) } == ["another", "many 0", "many 1"])
    }

    /// After any changes it is what one is that is made at once.
    @Test func aListingIsWhatIsThere() throws {
        let catalog = try state.open()
        var random = SeededGenerator(seed: 7)
        let others = (0..<40).map { "\($0 * 25)" }.sorted().map { Array($0.utf8) }
        var listing = NameListing()
        var existing: Set<String> = []
        // More and more, some of them, and none again, so that parts are split and vanish.
        for round in 0..<300 {
            var names = Set((0..<10).map { _ in "\(random.next() % 1000)" })
            if round >= 200 {
                names.formUnion(existing.sorted().shuffled(using: &random).prefix(existing.count / (300 - round)))
            }
            let transitions = names.sorted().map { name in
                let exists = round < 120 || round < 200 && random.next() % 2 == 0
                if exists { existing.insert(name) } else { existing.remove(name) }
                let bytes = Array(name.utf8)
                let place = random.next() % 2 == 0 ? CollectionPlace.main : .other
                return Catalog.Transition(
                    bytes, from: catalog.entry(bytes), to: exists ? Placement(.resident(place)) : .none)
            }
            try catalog.commit(transitions)
            listing.follow(catalog.names, others: others, element: Self.write)
            let all = existing.union(others.map { String(decoding: $0, as: UTF8.self) }).sorted()
            let isWhole = Self.text(listing) == all.map { "\"\($0)\"" }.joined(separator: ",")
            try #require(isWhole, "round \(round)")
            #expect(catalog.names.count == existing.count)
            if round == 120 { #expect(catalog.names.parts.count > 2) }
        }
        #expect(existing.isEmpty && catalog.names.parts.count == 1)
    }

    /// What is made of a name depends on where its collection is.
    @Test func aMoveIsAChange() throws {
        let catalog = try catalog(3)
        var listing = NameListing()
        func follow() -> String {
            listing.follow(catalog.names, others: []) { name, list in
                list.string(catalog.entry(name).placement.authority?.backend ?? "")
            }
            return Self.text(listing)
        }
        #expect(follow() == #""main","main","main""#)
        try catalog.set("many 1", Placement(.resident(.other)))
        #expect(follow() == #""main","other","main""#)
    }

    @Test func nothingIsThere() throws {
        var listing = NameListing()
        listing.follow(try state.open().names, others: [], element: Self.write)
        #expect(listing.texts.isEmpty)
        listing.follow(try catalog(1).names, others: []) { _, _ in }
        #expect(listing.texts.isEmpty, "there is nothing to say of it")
    }
}
