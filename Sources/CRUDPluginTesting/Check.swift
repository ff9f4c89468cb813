import CRUDPluginABI

/// One requirement of the plugin contract.
package struct Check: Sendable {
    /// What it looks at, in a few words.
    package let name: String
    package let scope: Scope
    /// The capabilities without which there is nothing to check; 0: every plugin is checked.
    let capabilities: UInt64
    let body: @Sendable (CheckContext) throws -> Void

    /// What a check is about.
    package enum Scope: Sendable {
        /// The plugin, while no storage was opened yet.
        case plugin
        /// A backend, whatever the format of its items.
        case backend
        /// Records, in each format.
        case records
    }

    private init(
        _ scope: Scope, _ name: String, needs capabilities: Int = 0,
        _ body: @escaping @Sendable (CheckContext) throws -> Void
    ) {
        self.name = name
        self.scope = scope
        self.capabilities = UInt64(capabilities)
        self.body = body
    }

    /// In the order in which they run.
    package static let all: [Check] = [
        Check(.plugin, "function table", PluginChecks.table),
        Check(.plugin, "check_options touches no storage", PluginChecks.options),
        Check(.plugin, "options of other kinds", PluginChecks.oddOptions),

        Check(.backend, "capabilities of a backend", BackendChecks.capabilities),
        Check(.backend, "refusal of what is not declared", BackendChecks.undeclared),
        Check(.backend, "structs of another size", BackendChecks.growth),
        Check(.backend, "deadlines", BackendChecks.deadlines),
        Check(.backend, "interrupts", InterruptChecks.scans),
        Check(.backend, "data version", BackendChecks.dataVersion),
        Check(.backend, "backups", BackupChecks.copies),

        Check(.records, "collections", CollectionChecks.lifeCycle),
        Check(.records, "odd names of collections", CollectionChecks.oddNames),
        Check(.records, "collections as they are", AsItIsChecks.looks),
        Check(.records, "formats apart", CollectionChecks.formats),
        Check(.records, "failures", CollectionChecks.failures),
        Check(.records, "preconditions", WriteChecks.preconditions),
        Check(.records, "batches in order", WriteChecks.order),
        Check(.records, "mutations that are not defined", WriteChecks.undefined),
        Check(.records, "large batches", WriteChecks.large),
        Check(.records, "batches over collections", WriteChecks.collections),
        Check(.records, "atomic batches", needs: CRUDD_HAS_TRANSACTIONS, AtomicWriteChecks.batches),
        Check(.records, "checks in atomic batches", needs: CRUDD_HAS_TRANSACTIONS, AtomicWriteChecks.checks),
        Check(.records, "reading by id", ReadChecks.read),
        Check(.records, "seeing writes", ReadChecks.visibility),
        Check(.records, "reading fast", needs: CRUDD_CAN_READ_FAST, ReadChecks.speed),
        Check(.records, "reading beside writes", needs: CRUDD_CAN_READ_CONCURRENTLY, ConcurrencyChecks.readers),
        Check(.records, "scanning by id", ScanChecks.byID),
        Check(.records, "scanning in any order", ScanChecks.inAnyOrder),
        Check(.records, "scanning by key", needs: CRUDD_HAS_INDEXES, ScanChecks.byKey),
        Check(.records, "scanning by sequence", needs: CRUDD_HAS_SEQUENCES, ScanChecks.bySequence),
        Check(.records, "counting", ScanChecks.count),
        Check(.records, "keys of written records", needs: CRUDD_HAS_INDEXES, IndexChecks.writes),
        Check(.records, "setting keys", needs: CRUDD_HAS_INDEXES, IndexChecks.setKeys),
        Check(.records, "changing indexes", needs: CRUDD_HAS_INDEXES, IndexChecks.changes),
        Check(.records, "sequence numbers", SequenceChecks.stored),
        Check(.records, "numbering changes", needs: CRUDD_IS_SHARED | CRUDD_HAS_SEQUENCES, SequenceChecks.own),
        Check(.records, "removals", needs: CRUDD_HAS_SEQUENCES, RemovalChecks.removals),
        Check(.records, "trimming removals", needs: CRUDD_HAS_SEQUENCES, RemovalChecks.trimming),
        Check(.records, "history of a collection", needs: CRUDD_HAS_SEQUENCES, RemovalChecks.history),
        Check(.records, "history of another collection", needs: CRUDD_TAKES_HISTORY, RemovalChecks.taking),
        Check(.records, "expiry", needs: CRUDD_HAS_EXPIRY, ExpiryChecks.expiry),
        Check(.records, "removing what has expired", needs: CRUDD_HAS_EXPIRY, ExpiredChecks.removal),
        Check(.records, "reopening after expiry", needs: CRUDD_HAS_EXPIRY, ExpiredChecks.reopening),
        Check(.records, "odd ids", TextChecks.ids),
        Check(.records, "odd items", TextChecks.items),
        Check(.records, "odd revisions", TextChecks.revisions),
        Check(.records, "large items", TextChecks.largeItems),
        Check(.records, "reopening", DurabilityChecks.reopening),
        Check(.records, "reopening after kill -9", DurabilityChecks.kill),
    ]
}
