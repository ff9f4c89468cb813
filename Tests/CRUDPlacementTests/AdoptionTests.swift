import CRUDModel
import CRUDPlacement
import CRUDStorage
import Logging
import Testing

/// Collections that have been found in a backend while the rules may have changed.
@Suite struct AdoptionTests {
    private static let name = Array("found".utf8)
    private let state: StateDirectory

    init() throws { state = try StateDirectory() }

    private static func rules(_ pattern: String, _ backend: String, _ format: CollectionRule.Format) throws
        -> CollectionRules
    {
        CollectionRules([
            CollectionRule(
                pattern: try CollectionPattern(Array(pattern.utf8)), backend: backend, format: format, indexes: [],
                position: .start)
        ])
    }

    private func control(_ rules: CollectionRules) throws -> PlacementControl {
        let control = PlacementControl(try state.open(), logger: Logger(label: "test"))
        control.follow([], rules, maximumByPattern: 1)
        return control
    }

    @Test(arguments: ["found", "f*"])
    func whatIsWantedThereIsAdopted(pattern: String) throws {
        let control = try control(Self.rules(pattern, "main", .xml))
        #expect(control.formatToAdopt(Self.name, in: "main") == .xml)
        #expect(control.adopt([(Self.name, .xml)], in: "main") == nil)
        #expect(control.catalog.entry(Self.name).placement == Placement(.resident(.xml)))
        #expect(control.formatToAdopt(Self.name, in: "main") == nil, "it is known")
    }

    /// Between the look at the storage and the record of the catalog another file has come into force: what it wants
    /// elsewhere must not become what is served.
    @Test(
        arguments: [("found", "other", .xml), ("found", "main", .json), ("another", "main", .xml)]
            as [(String, String, CollectionRule.Format)])
    func whatOtherRulesWantElsewhereIsNot(pattern: String, backend: String, format: CollectionRule.Format) throws {
        let control = try control(Self.rules("found", "main", .xml))
        #expect(control.formatToAdopt(Self.name, in: "main") == .xml)
        control.follow([], try Self.rules(pattern, backend, format), maximumByPattern: 1)
        #expect(control.adopt([(Self.name, .xml)], in: "main") == nil)
        #expect(control.catalog.entry(Self.name) == .none)
    }

    /// A client has created it meanwhile, or it was dropped and is still being removed.
    @Test(arguments: [Placement(.resident(.other)), Placement(.absent, obsolete: [.xml])])
    func whatIsKnownByThenIsNot(placement: Placement) throws {
        let control = try control(Self.rules("found", "main", .xml))
        try control.catalog.commit([.init(Self.name, from: .none, to: placement)])
        #expect(control.formatToAdopt(Self.name, in: "main") == nil)
        #expect(control.adopt([(Self.name, .xml)], in: "main") == nil)
        #expect(control.catalog.entry(Self.name).placement == placement)
    }
}
