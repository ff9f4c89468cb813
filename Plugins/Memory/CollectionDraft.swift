import CRUDPluginKit

/// A collection as a batch will leave it, which no reader sees yet.
struct CollectionDraft {
    private let collection: MemoryCollection
    private var records: RecordSet
    /// Nil: there is no log.
    private let changes: Changes?

    init(of collection: MemoryCollection, _ changes: Changes?) {
        self.collection = collection
        self.changes = changes
        records = collection.snapshot
    }

    func publish() {
        collection.publish(records)
    }

    /// Applies one mutation and returns whether it took effect.
    ///
    /// - Parameter usedBytes: what the records of all collections count.
    mutating func apply(
        _ mutation: Mutation<MemoryCollection>, _ position: Int, _ batch: borrowing WriteBatch<MemoryCollection>,
        usedBytes: inout Int, maximumBytes: Int
    ) -> Bool {
        let old = records.byID.element(at: mutation.id)
        guard permits(mutation, position, batch, old) else { return false }
        let new: Record?
        switch mutation.kind {
        case .check: return batch.applied(position, replacing: false)
        case .remove:
            if let old { remove(old, sequence: mutation.sequence, at: batch.now, usedBytes: &usedBytes) }
            return batch.applied(position, replacing: false)
        case .setKeys: new = old?.replacing(keys: keys(of: mutation))
        default:
            new = Record(
                in: collection.number, id: mutation.id, item: mutation.item, revision: mutation.revision,
                expiresAt: mutation.expiresAt, sequence: mutation.sequence, keys: keys(of: mutation))
        }
        let growth = (new?.size ?? 0) - (old?.size ?? 0)
        guard usedBytes + growth <= maximumBytes else { return batch.refused(position, .noSpace) }
        usedBytes += growth
        records.replace(old, by: new)
        if let new { changes?.store(new, replacing: old) }
        let isReplaced = old.map { !batch.call.hasExpired($0.expiresAt) } ?? false
        return batch.applied(position, replacing: mutation.kind == .put && isReplaced)
    }

    /// Removes a record. What is remembered of it is smaller than it.
    private mutating func remove(_ record: Record, sequence: UInt64, at now: Int64, usedBytes: inout Int) {
        usedBytes -= records.size
        let removal = records.remove(record, sequence: sequence, at: now)
        changes?.remove(record, sequence: sequence, rememberedBy: removal)
        usedBytes += records.size
    }

    /// Removes records that have expired.
    ///
    /// - Returns: these records, and when the next one expires.
    mutating func removeExpired(
        _ request: borrowing ExpiryRequest<MemoryCollection>, usedBytes: inout Int
    ) -> (removed: [Record], nextExpiry: Int64?) {
        let expired = records.expired(at: request.now, limit: request.limit)
        for (number, record) in expired.enumerated() {
            remove(record, sequence: request.firstSequence + UInt64(number), at: request.now, usedBytes: &usedBytes)
        }
        return (expired, records.nextExpiry)
    }

    private func permits(
        _ mutation: Mutation<MemoryCollection>, _ position: Int, _ batch: borrowing WriteBatch<MemoryCollection>,
        _ old: Record?
    ) -> Bool {
        guard let old else { return batch.permits(mutation, at: position, current: nil) }
        return old.withBytes { bytes in
            let revision = UnsafeRawBufferPointer(rebasing: bytes[old.revisionRange])
            return batch.permits(mutation, at: position, current: (revision, old.expiresAt))
        }
    }

    /// The keys that are not empty, with the numbers of their indexes.
    private func keys(of mutation: Mutation<MemoryCollection>) -> [Record.Key] {
        records.indexes.enumerated().compactMap { position, index in
            let key = mutation.keys[position]
            return key.isEmpty ? nil : (index.number, key)
        }
    }
}
