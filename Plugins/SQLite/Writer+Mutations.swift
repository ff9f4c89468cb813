import CRUDPluginKit
import CSQLite

extension Writer {
    /// What has become of a mutation.
    enum Effect {
        case applied, refused
        /// It is refused, and the transaction is not what it was before it: a trigger has undone everything, or a part
        /// of what the trigger refused has stayed.
        case refusedByTrigger
    }

    /// Applies one mutation.
    func apply(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Effect {
        do {
            let expected = mutation.precondition == .revision ? mutation.expected : nil
            return try attempt(mutation, position, batch, expected) ? .applied : .refused
        } catch let error where error.status == .unsupported {
            // Too big for SQLite, or against a constraint that somebody has put on the table.
            batch.refused(position, .unsupported)
            return connection.isInTransaction && !connection.hasTriggerFailed ? .refused : .refusedByTrigger
        }
    }

    /// Executes the statements that the mutation may take effect by, whose conditions are those of its precondition,
    /// and returns whether one did. Only if none of them touches a row is the record looked at.
    ///
    /// - Parameter expected: the revision that must be stored; nil: any.
    private func attempt(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>,
        _ expected: UnsafeRawBufferPointer?
    ) throws(StorageFailure) -> Bool {
        let layout = mutation.collection.layout
        func execute(_ kind: CollectionStatement) throws(StorageFailure) -> Bool {
            try self.execute(kind, mutation, layout, expected, now: batch.now)
        }
        func update() throws(StorageFailure) -> Bool {
            if try execute(.update) { return true }
            return layout.indexes.isEmpty ? false : try execute(.updateWithKeys)
        }
        switch (mutation.kind, mutation.precondition) {
        case (.put, .none):
            if try update() { return batch.applied(position, replacing: true) }
            if try execute(.insert) { return batch.applied(position, replacing: false) }
        case (.put, .absent):
            if try execute(.insert) { return batch.applied(position, replacing: false) }
        case (.put, .present), (.put, .revision):
            if try update() { return batch.applied(position, replacing: true) }
        case (.remove, .none), (.remove, .present), (.remove, .revision):
            if try execute(.delete) {
                try remember(mutation.id, of: mutation.collection, sequence: mutation.sequence, now: batch.now)
                return batch.applied(position, replacing: false)
            }
        case (.setKeys, .revision) where !layout.indexes.isEmpty:
            if try execute(.setKeys) { return batch.applied(position, replacing: false) }
        default: break
        }
        return try judge(mutation, position, batch, expected)
    }

    /// Runs a statement with what a mutation brings and says whether it touched a row.
    private func execute(
        _ kind: CollectionStatement, _ mutation: Mutation<SQLiteCollection>, _ layout: SQLiteCollection.Layout,
        _ expected: UnsafeRawBufferPointer?, now: Int64
    ) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(kind, layout.scope)
        try connection.check(statement.bind(1, text: mutation.id))
        if mutation.kind == .put { try bindRecord(statement, mutation) }
        try connection.check(statement.bind(6, integer: now))
        if case .insert = kind {
            // It has no such parameter: a record that is there with that revision is in its way.
        } else {
            try connection.check(statement.bind(7, textOrNull: expected))
        }
        if mutation.kind != .remove {
            for index in layout.indexes.indices {
                try connection.check(statement.bind(Int32(8 + index), blob: mutation.keys[index]))
            }
        }
        try connection.run(statement)
        return connection.changes > 0
    }

    /// Binds what a put stores beside the id and the keys.
    private func bindRecord(_ statement: Statement, _ mutation: Mutation<SQLiteCollection>) throws(StorageFailure) {
        try connection.check(statement.bind(2, text: mutation.revision))
        switch mutation.collection.format {
        case .json, .xml: try connection.check(statement.bind(3, text: mutation.item))
        case .plist: try connection.check(statement.bind(3, blob: mutation.item))
        }
        try connection.check(statement.bind(4, integerOrNull: mutation.expiresAt))
        try connection.check(statement.bind(5, integerOrNull: Int64(clamping: mutation.sequence)))
    }

    /// Decides a mutation by the record that is there: a check, or one that no statement could apply.
    private func judge(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>,
        _ expected: UnsafeRawBufferPointer?
    ) throws(StorageFailure) -> Bool {
        let collection = mutation.collection
        let statement = try connection.statement(.read(withItem: false), collection.scope)
        defer { statement.reset() }
        try connection.check(statement.bind(1, text: mutation.id))
        var current: (revision: UnsafeRawBufferPointer, expiresAt: Int64)?
        var isStored = true
        if try connection.step(statement) {
            let content = statement.storedContent
            current = (content.revision, statement.storedExpiry)
            isStored = content.isStored
        }
        guard batch.permits(mutation, at: position, current: current) else { return false }
        if expected != nil, !isStored {
            // No statement finds the revision by which the host knows a corrupt row.
            statement.reset()
            return try attempt(mutation, position, batch, nil)
        }
        let changesNothing =
            mutation.kind == .check || mutation.kind == .setKeys && collection.layout.indexes.isEmpty
        // Otherwise a trigger that somebody has put on the table has ignored the statement.
        return changesNothing
            ? batch.applied(position, replacing: false) : batch.refused(position, .unsupported)
    }
}
