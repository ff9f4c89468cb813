import CRUDPluginKit

/// The suite as a batch will leave it, and the keys that change.
struct SuiteDraft {
    private(set) var content: SuiteContent
    /// The new values by key; nil: the key is removed.
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

    /// Applies one mutation and returns whether it took effect.
    mutating func apply(
        _ mutation: Mutation<UserDefaultsCollection>, _ position: Int,
        _ batch: borrowing WriteBatch<UserDefaultsCollection>
    ) -> Bool {
        let collection = mutation.collection
        let current = content[collection].record(mutation.id)
        guard permits(mutation, position, batch, current) else { return false }
        if mutation.kind == .check { return batch.applied(position, replacing: false) }
        reserve(mutation.sequence)
        let id = Array(mutation.id)
        let qualifier = content.qualifier(of: collection)
        if mutation.kind == .put {
            let record = RecordTable.Record(
                id: id, item: Array(mutation.item), revision: Array(mutation.revision), expiresAt: mutation.expiresAt,
                sequence: mutation.sequence)
            content[collection].insert(record)
            changes[SuiteKey(collection.name, .item(id: id, qualifier)).text] = .some(StoredItem.value(mutation.item))
            changes[SuiteKey(collection.name, .metadata(id: id, qualifier)).text] = .some(
                StoredMetadata.value(of: record))
        } else {
            remove(id, from: collection)
        }
        let isReplaced = current.map { !batch.call.hasExpired($0.expiresAt) } ?? false
        return batch.applied(position, replacing: mutation.kind == .put && isReplaced)
    }

    private mutating func reserve(_ sequence: UInt64) {
        if content.reserve(sequence) { changes[SuiteKey.sequenceCeiling] = .some("\(content.sequenceCeiling)") }
    }

    private mutating func remove(_ id: [UInt8], from collection: UserDefaultsCollection) {
        let qualifier = content.qualifier(of: collection)
        content[collection].remove(id)
        changes[SuiteKey(collection.name, .item(id: id, qualifier)).text] = .some(nil)
        changes[SuiteKey(collection.name, .metadata(id: id, qualifier)).text] = .some(nil)
    }

    /// Removes records that have expired, and returns their ids.
    mutating func removeExpired(_ request: borrowing ExpiryRequest<UserDefaultsCollection>) -> [[UInt8]] {
        let ids = content[request.collection].expired(request.call, limit: request.limit).map(\.id)
        for id in ids { remove(id, from: request.collection) }
        if !ids.isEmpty { reserve(request.firstSequence + UInt64(ids.count - 1)) }
        return ids
    }

    private func permits(
        _ mutation: Mutation<UserDefaultsCollection>, _ position: Int,
        _ batch: borrowing WriteBatch<UserDefaultsCollection>, _ current: RecordTable.Record?
    ) -> Bool {
        guard let current else { return batch.permits(mutation, at: position, current: nil) }
        // The bytes are read before the closure returns.
        return unsafe current.revision.withUnsafeBytes {
            batch.permits(mutation, at: position, current: ($0, current.expiresAt))
        }
    }
}
