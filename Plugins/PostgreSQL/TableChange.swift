import CRUDPluginKit

/// Makes a table what the catalog says of its collection: adds and drops columns of keys, and makes and drops indexes.
/// Each step is a statement of its own, so that whatever ends it in the middle, it is continued from what is there.
///
/// What needs the table for itself asks for it for a moment only, as later statements wait behind it. An index on
/// a table that is not small is made beside readers and writers (`CREATE INDEX CONCURRENTLY`); one that was interrupted
/// is left by the server, and has to be dropped first.
struct TableChange {
    let catalog: Catalog
    let collection: PostgreSQLCollection

    private static let lockTimeout = "100ms"
    /// How often a statement is tried that another session's lock blocks, or that collides with another daemon.
    private static let maximumAttempts = 5

    private var table: String { catalog.schema.table(collection.tableName) }

    func run() throws(StorageFailure) {
        var attempts = 0
        while true {
            catalog.connection.hasCollided = false
            do throws(StorageFailure) {
                return try continueFromHere()
            } catch {
                attempts += 1
                guard catalog.connection.hasCollided, !catalog.connection.isBroken, attempts < Self.maximumAttempts
                else { throw error }
            }
        }
    }

    private func continueFromHere() throws(StorageFailure) {
        var state = try catalog.state(of: collection)
        let wanted = try catalog.declaredIndexes(of: collection.number).map(\.number)
        let keepsSequences = try catalog.hasHistory(collection.number)
        let unwanted = state.columns.subtracting(wanted).sorted()
        let missing = Set(wanted).subtracting(state.columns).sorted()
        let alterations =
            unwanted.map { "DROP COLUMN IF EXISTS \(keyColumn($0))" }
            + missing.map { "ADD COLUMN IF NOT EXISTS \(keyColumn($0)) bytea NOT NULL DEFAULT ''" }
        for alteration in alterations {
            // With a column goes what is indexed by it.
            try alter("ALTER TABLE \(table) \(alteration)")
        }
        state.columns = Set(wanted)
        collection.note(state)
        var indexes = wanted.map(TableIndex.keys)
        if keepsSequences {
            indexes += TableIndex.sequences(of: collection.number)
            if try catalog.hasForeignSequences(collection) { try catalog.forgetForeignSequences(of: collection) }
        } else if !catalog.schema.numbersChanges {
            try forgetSequences(state)
        }
        for index in indexes where !state.isReady(index.name) {
            if state.indexes[index.name] != nil {
                try alter("DROP INDEX IF EXISTS \(catalog.schema.table(index.name))")
            }
            try make(index, isSmall: state.isSmall)
            state.indexes[index.name] = true
            collection.note(state)
        }
    }

    private func forgetSequences(_ state: TableState) throws(StorageFailure) {
        for index in TableIndex.sequences(of: collection.number) where state.indexes[index.name] != nil {
            try alter("DROP INDEX IF EXISTS \(catalog.schema.table(index.name))")
        }
        if state.hasRemovals {
            try alter("DROP TABLE IF EXISTS \(catalog.schema.table(removalTable(collection.number)))")
        }
    }

    private func make(_ index: TableIndex, isSmall: Bool) throws(StorageFailure) {
        let definition = "\(index.name) ON \(table) \(index.definition)"
        if isSmall { return try alter("CREATE INDEX \(definition)") }
        // It waits for transactions that have begun before, however long they last.
        try run("SET lock_timeout = 0")
        let result = try catalog.connection.run(script: "CREATE INDEX CONCURRENTLY \(definition)", catalog.wait)
        // Not every server can.
        if let error = result.error, ["0A000", "42601", "25001"].contains(error.state) {
            return try alter("CREATE INDEX \(definition)")
        }
        try result.check("make index \(index.name)")
    }

    /// Runs a statement that needs the table for itself.
    private func alter(_ statement: String) throws(StorageFailure) {
        try run("SET lock_timeout = '\(Self.lockTimeout)'")
        try run(statement)
    }

    private func run(_ statement: String) throws(StorageFailure) {
        try catalog.run(statement, "change table \(collection.tableName)")
    }
}
