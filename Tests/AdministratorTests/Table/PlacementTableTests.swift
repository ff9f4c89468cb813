import CRUDPlacement
import Testing

/// The table of states and events itself, with real databases: what the reply says, what the catalog says, what is
/// served, and what a start makes of it are what ``Placement/next(_:)`` says, also where the catalog cannot be written
/// and where the daemon is killed at a call that writes it.
@Suite struct PlacementTableTests {
    /// Each event, after its record could not be written and then not be synced, so that nothing has changed.
    @Test(arguments: TableSituation.all)
    func everyEvent(situation: TableSituation) throws {
        let table = try PlacementTable(situation, uses: 1)
        try table.prepare()
        for event in table.events { try table.check(event) }
        try table.replaceStorage()
        try table.repair()
    }

    /// Each event that changes something, with a kill before its record is written, before it is synced, and before
    /// anything follows from it.
    @Test(arguments: TableSituation.all)
    func aKillAtEveryCall(situation: TableSituation) throws {
        let table = try PlacementTable(situation, uses: PlacementTable.Kill.allCases.count)
        try table.prepare()
        for event in table.events {
            for kill in PlacementTable.Kill.allCases { try table.check(event, kill) }
        }
        try table.repair()
    }

    /// A state or an event without a row does not compile; that a row is the one of its state or event is found here.
    @Test func everythingHasARow() {
        for situation in TableSituation.all {
            #expect(TableSituation.State(situation.placement.state) == situation.state)
            #expect(situation.placement.isValid)
        }
        let events = TableEvent.Kind.allCases.flatMap(\.events)
        #expect(events.count == TableEvent.allCases.count && Set(events) == Set(TableEvent.allCases))
        for kind in TableEvent.Kind.allCases {
            for event in kind.events {
                #expect(TableEvent.Kind(event.event(.none, wanted: .p, records: 0)) == kind)
            }
        }
    }
}
