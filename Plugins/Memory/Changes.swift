import CRUDRecordLog

/// What a batch changes, as the log has to know it.
final class Changes {
    /// What the log stores, in the order in which it happens.
    let frame = LogFrame()
    /// What is needed from then on, and what is not needed any more, in the same order.
    private(set) var effects: [Effect] = []
    /// Whether the log needs more room afterwards.
    private(set) var grows = false
    /// The greatest sequence number.
    private(set) var lastSequence: UInt64 = 0

    enum Effect {
        case added(Record)
        case removed(Record)
    }

    /// What an entry of the log is.
    enum Entry: UInt8 {
        /// Those of ``Record/Kind``.
        case record, removal, collection
        /// A record was removed, and nothing remembers it.
        case removed
        /// A record was removed, and that is remembered.
        case remembered
        /// A collection was dropped, with all that it had.
        case dropped
    }

    var isEmpty: Bool { frame.payloadBytes == 0 }

    /// Begins with no changes.
    func reset() {
        frame.reset()
        effects.removeAll(keepingCapacity: effects.count < 4096)
        grows = false
        lastSequence = 0
    }

    /// A record, or what a collection is, was stored in the place of another.
    func store(_ new: Record, replacing old: Record?) {
        frame.append(new)
        if let old { effects.append(.removed(old)) }
        effects.append(.added(new))
        grows = true
        lastSequence = max(lastSequence, new.sequence)
    }

    /// A record was removed.
    ///
    /// - Parameter removal: what remembers it; nil: nothing does.
    func remove(_ record: Record, sequence: UInt64, rememberedBy removal: Record?) {
        effects.append(.removed(record))
        if let removal {
            frame.append(removal, as: .remembered)
            effects.append(.added(removal))
        } else {
            record.withBytes { bytes in
                let header = Record.LoggedHeader(
                    expiresAt: 0, sequence: sequence, collection: record.collection, keysSize: 0, itemSize: 0,
                    idSize: UInt16(record.idRange.count), keyCount: 0, revisionSize: 0, kind: Entry.removed.rawValue)
                frame.append(header)
                frame.append(UnsafeRawBufferPointer(rebasing: bytes[record.idRange]))
            }
        }
        lastSequence = max(lastSequence, sequence)
    }

    /// What a collection is was stored in the place of what it was, if it is something else.
    ///
    /// - Returns: what the log knows of it from then on.
    func describe(_ collection: MemoryCollection, _ records: RecordSet) -> Record {
        let new = CollectionState(collection, records).record(number: collection.number)
        let old = collection.description
        if let old, old.hasBytes(of: new) { return old }
        let grew = grows
        store(new, replacing: old)
        // A new one in the place of another is as good as no growth.
        grows = grew || old == nil
        return new
    }

    /// A collection continues the history of another one.
    ///
    /// - Returns: what the log knows of it from then on.
    func take(_ collection: MemoryCollection, _ records: RecordSet, _ lastSequence: UInt64) -> Record {
        let new = CollectionState(collection, records).record(number: collection.number)
        store(new, replacing: collection.description)
        self.lastSequence = max(self.lastSequence, lastSequence)
        return new
    }

    /// A removal is to be remembered that took place elsewhere.
    func remember(_ removal: Record) {
        frame.append(removal)
        effects.append(.added(removal))
        grows = true
        lastSequence = max(lastSequence, removal.sequence)
    }

    /// A collection was dropped.
    func drop(_ collection: MemoryCollection) {
        frame.append(
            Record.LoggedHeader(
                expiresAt: 0, sequence: 0, collection: collection.number, keysSize: 0, itemSize: 0, idSize: 0,
                keyCount: 0, revisionSize: 0, kind: Entry.dropped.rawValue))
        let records = collection.snapshot
        records.byID.visit(TreeRange()) { record in
            forget(record)
            return true
        }
        records.bySequence?.visitRemovals { forget($0) }
        if let description = collection.description { forget(description) }
    }

    /// Something is not needed any more, which the log knows by another entry.
    func forget(_ record: Record) { effects.append(.removed(record)) }
}

extension LogFrame {
    /// Appends a record as the log stores it.
    func append(_ record: Record, as entry: Changes.Entry? = nil) {
        var header = record.loggedHeader
        if let entry { header.kind = entry.rawValue }
        append(header)
        record.withBytes { append($0) }
    }
}
