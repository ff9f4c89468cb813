import CRUDPluginKit

/// The suite as a batch is leaving it, and the keys that change on the way.
struct Draft {
    private(set) var content: SuiteContent
    /// By key: what it gets; nil: it goes.
    private(set) var changes: [String: (any Sendable)?] = [:]

    init(of content: SuiteContent) {
        self.content = content
    }

    /// Gives a collection a format that it has not had.
    mutating func add(_ format: SuiteKey.Format, to name: [UInt8]) {
        let formats = content.add(format, to: name)
        changes[SuiteKey(name, .formats).text] = .some(formats.map(\.rawValue).joined(separator: " "))
    }

    /// Removes a collection, whose keys are given.
    mutating func remove(_ name: [UInt8], keys: [String]) {
        content.remove(name)
        for key in keys { changes[key] = .some(nil) }
    }

    /// Applies one mutation and says whether it took effect.
    mutating func apply(
        _ mutation: Mutation<UserDefaultsCollection>, _ position: Int,
        _ batch: borrowing WriteBatch<UserDefaultsCollection>
    ) -> Bool {
        let collection = mutation.collection
        let current = content[collection].record(mutation.id)
        guard permits(mutation, position, batch, current) else { return false }
        if mutation.kind == .check { return batch.applied(position, replacing: false) }
        let id = Array(mutation.id)
        let qualifier = content.qualifier(of: collection)
        let itemKey = SuiteKey(collection.name, .item(id: id, qualifier)).text
        let revisionKey = SuiteKey(collection.name, .revision(id: id, qualifier)).text
        if mutation.kind == .put {
            let record = RecordTable.Record(id: id, item: Array(mutation.item), revision: Array(mutation.revision))
            content[collection].insert(record)
            changes[itemKey] = .some(StoredItem.value(mutation.item))
            changes[revisionKey] = .some(StoredRevision.value(mutation.revision, of: record.item))
        } else {
            content[collection].remove(id)
            changes[itemKey] = .some(nil)
            changes[revisionKey] = .some(nil)
        }
        return batch.applied(position, replacing: mutation.kind == .put && current != nil)
    }

    private func permits(
        _ mutation: Mutation<UserDefaultsCollection>, _ position: Int,
        _ batch: borrowing WriteBatch<UserDefaultsCollection>, _ current: RecordTable.Record?
    ) -> Bool {
        guard let current else { return batch.permits(mutation, at: position, current: nil) }
        // The bytes are read before the closure returns.
        return unsafe current.revision.withUnsafeBytes { batch.permits(mutation, at: position, current: $0) }
    }
}
