import CRUDPluginKit

/// What a batch makes of a collection, which no reader sees yet.
///
/// It is kept apart from the records until the log has it. Then it is applied to them in place: where no reader is in
/// the middle of a scan, not a node of a tree is copied.
struct CollectionDraft {
    private let collection: MemoryCollection
    private let keepsSequences: Bool
    private let indexNumbers: [UInt32]
    /// Nil: there is no log.
    private let changes: Changes?
    private var operations: [Operation] = []
    /// What the mutations so far have made of the records that they concern; nil: one was removed.
    private var pending: [PendingID: Record?] = [:]

    private enum Operation {
        case replace(Record?, by: Record, at: OrderedTree<Record>.Place?)
        case remove(Record, rememberedBy: Record?)
    }

    /// An id in the memory of the host, which is valid until the call returns.
    private struct PendingID: Hashable {
        let bytes: UnsafeRawBufferPointer

        static func == (one: PendingID, other: PendingID) -> Bool { one.bytes.compare(to: other.bytes) == 0 }

        func hash(into hasher: inout Hasher) { hasher.combine(bytes: bytes) }
    }

    /// - Parameter count: how many mutations there may be.
    init(of collection: MemoryCollection, _ changes: Changes?, count: Int = 0) {
        self.collection = collection
        self.changes = changes
        operations.reserveCapacity(count)
        if count > 1 { pending.reserveCapacity(count) }
        (keepsSequences, indexNumbers) = collection.withRecords { ($0.hasSequences, $0.indexes.map(\.number)) }
    }

    /// How many operations readers wait for at most, where a batch need not be seen at once.
    private static let operationsAtOnce = 64

    /// Has readers see what the batch has made.
    ///
    /// - Parameter isAtomic: whether they see all of it or nothing.
    func publish(isAtomic: Bool) {
        var rest = operations[...]
        while !rest.isEmpty {
            let part = isAtomic ? rest : rest.prefix(Self.operationsAtOnce)
            collection.withRecords { records in
                for operation in part {
                    switch operation {
                    case .replace(let old, let new, let place): records.replace(old, by: new, at: place)
                    case .remove(let old, let removal): records.remove(old, rememberedBy: removal)
                    }
                }
            }
            rest = rest[part.endIndex...]
        }
    }

    /// Applies one mutation and returns whether it took effect.
    ///
    /// - Parameters:
    ///   - mutation: the one at `position`.
    ///   - position: its place in the batch.
    ///   - batch: gets the outcome.
    ///   - usedBytes: what the records of all collections count.
    ///   - maximumBytes: what they may count.
    mutating func apply(
        _ mutation: Mutation<MemoryCollection>, _ position: Int, _ batch: borrowing WriteBatch<MemoryCollection>,
        usedBytes: inout Int, maximumBytes: Int
    ) -> Bool {
        let id = PendingID(bytes: mutation.id)
        var (old, place): (Record?, OrderedTree<Record>.Place?)
        if let earlier = pending[id] {
            old = earlier
        } else if let found = collection.withRecords({ $0.byID.find(mutation.id) }) {
            (old, place) = found
        }
        guard permits(mutation, position, batch, old) else { return false }
        let new: Record?
        switch mutation.kind {
        case .check: return batch.applied(position, replacing: false)
        case .remove:
            if let old { remove(old, sequence: mutation.sequence, at: batch.now, usedBytes: &usedBytes) }
            if batch.count > 1 { pending[id] = .some(nil) }
            return batch.applied(position, replacing: false)
        case .setKeys: new = old?.replacing(keys: keys(of: mutation))
        default:
            new = Record(
                in: collection.number, id: mutation.id, item: mutation.item, revision: mutation.revision,
                expiresAt: mutation.expiresAt, sequence: mutation.sequence, keys: keys(of: mutation))
        }
        // No record: keys were to be set of one that has just gone, which is not permitted.
        guard let new else { return batch.refused(position, .notFound) }
        let growth = new.size - (old?.size ?? 0)
        guard growth <= 0 || usedBytes + growth <= maximumBytes else { return batch.refused(position, .noSpace) }
        usedBytes += growth
        operations.append(.replace(old, by: new, at: place))
        if batch.count > 1 { pending[id] = new }
        changes?.store(new, replacing: old)
        let isReplaced = old.map { !batch.call.hasExpired($0.expiresAt) } ?? false
        return batch.applied(position, replacing: mutation.kind == .put && isReplaced)
    }

    /// Removes a record. What is remembered of it is smaller than it.
    private mutating func remove(_ record: Record, sequence: UInt64, at now: Int64, usedBytes: inout Int) {
        let removal = keepsSequences && sequence != 0 ? Record(removalOf: record, sequence: sequence, at: now) : nil
        usedBytes += (removal?.size ?? 0) - record.size
        operations.append(.remove(record, rememberedBy: removal))
        changes?.remove(record, sequence: sequence, rememberedBy: removal)
    }

    /// Removes records that have expired.
    ///
    /// - Returns: these records.
    mutating func removeExpired(
        _ request: borrowing ExpiryRequest<MemoryCollection>, usedBytes: inout Int
    ) -> [Record] {
        let (now, limit) = (request.now, request.limit)
        let expired = collection.withRecords { $0.expired(at: now, limit: limit) }
        for (number, record) in expired.enumerated() {
            remove(record, sequence: request.firstSequence + UInt64(number), at: now, usedBytes: &usedBytes)
        }
        return expired
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
        if indexNumbers.isEmpty { return [] }
        return indexNumbers.enumerated().compactMap { position, number in
            let key = mutation.keys[position]
            return key.isEmpty ? nil : (number, key)
        }
    }
}
