/// Changes of a ``KeyValueStore`` that are to be applied together, each of which sees those before it.
struct KeyValueDraft<Store: KeyValueStore> {
    private let store: Store
    private(set) var changes: [StoredKey: [UInt8]?] = [:]
    /// The highest sequence number that has been used.
    private(set) var highestSequence: UInt64 = 0

    init(_ store: Store) {
        self.store = store
    }

    /// The record with an id, expired or not.
    func record(_ id: some Sequence<UInt8>, of collection: KeyValueCollection) throws(StorageFailure) -> StoredRecord? {
        let key = collection.layout.record(id)
        if let changed = changes[key] { return changed.map(StoredRecord.init(bytes:)) }
        return try store.storedValue(for: key).map(StoredRecord.init(bytes:))
    }

    mutating func set(_ key: StoredKey, to value: [UInt8]?) { changes.updateValue(value, forKey: key) }

    /// Puts a record into the place of another, in every order. Nil: there was none; there is none any more.
    mutating func replace(
        _ old: StoredRecord?, by new: StoredRecord?, _ id: [UInt8], of collection: KeyValueCollection
    ) {
        let layout = collection.layout
        if let old {
            for index in collection.indexes { set(layout.entry(index, key: old.key(index), id: id), to: nil) }
            if collection.keepsHistory { set(layout.sequence(old, id), to: nil) }
            if old.expiresAt != 0 { set(layout.expiry(old.expiresAt, id), to: nil) }
        }
        if let new {
            for index in collection.indexes { set(layout.entry(index, key: new.key(index), id: id), to: []) }
            if collection.keepsHistory { set(layout.sequence(new, id), to: id) }
            if new.expiresAt != 0 { set(layout.expiry(new.expiresAt, id), to: []) }
            highestSequence = max(highestSequence, new.sequence)
        }
        set(layout.record(id), to: new?.bytes)
    }

    /// Removes a record, and remembers that where the collection keeps its history.
    mutating func remove(
        _ record: StoredRecord, _ id: [UInt8], of collection: KeyValueCollection, sequence: UInt64, at now: Int64
    ) {
        replace(record, by: nil, id, of: collection)
        highestSequence = max(highestSequence, sequence)
        guard collection.keepsHistory else { return }
        set(collection.layout.sequence(sequence), to: [0] + now.bigEndianBytes + id)
        set(collection.layout.removal(sequence), to: [])
    }
}
