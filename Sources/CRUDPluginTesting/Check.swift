import CRUDPluginABI

/// One thing that the plugin contract asks.
package struct Check: Sendable {
    /// What it looks at, in a few words.
    package let name: String
    /// The capabilities without which there is nothing to check; 0: every plugin is checked.
    let capabilities: UInt64
    let body: @Sendable (Trial) throws -> Void

    init(_ name: String, needs capabilities: Int = 0, _ body: @escaping @Sendable (Trial) throws -> Void) {
        self.name = name
        self.capabilities = UInt64(capabilities)
        self.body = body
    }

    /// Those that look at the plugin while no storage was opened yet.
    package static let beforeOpening: [Check] = [
        Check("function table", TableChecks.table),
        Check("check_options touches no storage", TableChecks.options),
        Check("options of other kinds", TableChecks.oddOptions),
    ]

    package static let ofBackend: [Check] = [
        Check("capabilities of a backend", TableChecks.capabilities)
    ]

    /// Those that write records, run in each format.
    package static let ofRecords: [Check] = [
        Check("collections", CollectionChecks.lifeCycle),
        Check("odd names of collections", CollectionChecks.oddNames),
        Check("formats apart", CollectionChecks.formats),
        Check("failures", CollectionChecks.failures),
        Check("preconditions", WriteChecks.preconditions),
        Check("batches in order", WriteChecks.order),
        Check("large batches", WriteChecks.large),
        Check("batches over collections", WriteChecks.collections),
        Check("atomic batches", needs: CRUDD_HAS_TRANSACTIONS, WriteChecks.atomic),
        Check("checks in atomic batches", needs: CRUDD_HAS_TRANSACTIONS, WriteChecks.checks),
        Check("refusal of what is not declared", WriteChecks.undeclared),
        Check("reading by id", ReadChecks.read),
        Check("walking by id", ReadChecks.scan),
        Check("counting", ReadChecks.count),
        Check("seeing writes", ReadChecks.visibility),
        Check("reading fast", needs: CRUDD_CAN_READ_FAST, ReadChecks.speed),
        Check("reading beside writes", needs: CRUDD_CAN_READ_CONCURRENTLY, ConcurrencyChecks.readers),
        Check("filters", needs: CRUDD_CAN_QUERY, QueryChecks.filters),
        Check("sorts", needs: CRUDD_CAN_QUERY, QueryChecks.sorts),
        Check("odd ids", TextChecks.ids),
        Check("odd items", TextChecks.items),
        Check("odd revisions", TextChecks.revisions),
        Check("large items", TextChecks.largeItems),
        Check("reopening", DurabilityChecks.reopening),
        Check("reopening after kill -9", DurabilityChecks.kill),
    ]
}
