import CRUDPluginKit
import CSQLite

extension Writer {
    /// Applies one mutation and says whether it took effect.
    func apply(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        do {
            return try attempt(mutation, position, batch)
        } catch let error where error.status == .unsupported {
            // Too big for SQLite, or against a constraint that somebody has put on the table. SQLite has undone this
            // statement alone.
            return batch.refused(position, .unsupported)
        }
    }

    /// Runs the statements that the mutation may take effect by, whose conditions are those of its precondition. Only
    /// if none of them touches a row is the record looked at.
    private func attempt(
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        let layout = mutation.collection.layout
        func execute(_ kind: CollectionStatement) throws(StorageFailure) -> Bool {
            try self.execute(kind, mutation, layout, now: batch.now)
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
            if try execute(.delete) { return batch.applied(position, replacing: false) }
        case (.setKeys, .revision) where !layout.indexes.isEmpty:
            if try execute(.setKeys) { return batch.applied(position, replacing: false) }
        default: break
        }
        return try judge(mutation, position, batch)
    }

    /// Runs a statement with what a mutation brings and says whether it touched a row.
    private func execute(
        _ kind: CollectionStatement, _ mutation: Mutation<SQLiteCollection>, _ layout: SQLiteCollection.Layout,
        now: Int64
    ) throws(StorageFailure) -> Bool {
        let statement = try connection.statement(kind, layout.scope)
        try connection.check(statement.bind(1, text: mutation.id))
        if mutation.kind == .put { try bindRecord(statement, mutation) }
        try connection.check(statement.bind(6, integer: now))
        if case .insert = kind {
            // It has no such parameter: a record that is there with that revision is in its way.
        } else {
            let expected = mutation.precondition == .revision ? mutation.expected : nil
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
        _ mutation: Mutation<SQLiteCollection>, _ position: Int, _ batch: borrowing WriteBatch<SQLiteCollection>
    ) throws(StorageFailure) -> Bool {
        let collection = mutation.collection
        let statement = try connection.statement(.read(withItem: false), collection.scope)
        defer { statement.reset() }
        try connection.check(statement.bind(1, text: mutation.id))
        var current: (revision: UnsafeRawBufferPointer, expiresAt: Int64)?
        if try connection.step(statement) {
            guard let revision = try? statement.storedRevision(collection) else {
                return batch.refused(position, .corrupt)
            }
            current = (revision, statement.storedExpiry)
        }
        guard batch.permits(mutation, at: position, current: current) else { return false }
        let changesNothing = mutation.kind == .check || mutation.kind == .setKeys
        // Otherwise a trigger that somebody has put on the table keeps the mutation from having an effect.
        return changesNothing
            ? batch.applied(position, replacing: false) : batch.refused(position, .unsupported)
    }
}
