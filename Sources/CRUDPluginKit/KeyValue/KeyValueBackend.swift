/// A plugin over a ``KeyValueStore``: it keeps collections, records, indexes, the order of sequence numbers, what was
/// removed, and what expires, all of it in keys (``KeyLayout``).
public final class KeyValueBackend<Store: KeyValueStore>: StorageBackend {
    private let store: Store
    private let host: Host
    private var state: StoreState
    /// Open collections, by the keys of their entries.
    private var collections: [StoredKey: KeyValueCollection] = [:]

    /// How many pairs are read or changed at once where there may be many. A value may be an item of some megabytes.
    private static var pairsAtOnce: Int { 100 }

    public static var name: String { Store.name }
    public static var version: String { Store.version }
    public static var storageOption: Store.Options.Key? { Store.storageOption }

    public static var capabilities: Capabilities {
        let all: Capabilities = [.transactions, .indexes, .sequences, .expiry]
        return Store.isDurable ? all.union(.durable) : all
    }

    public init(options: Store.Options, host: Host, call: CallContext) throws(StorageFailure) {
        let store = try Store.open(options: options, host: host)
        self.store = store
        self.host = host
        let bytes = try store.storedValue(for: KeyLayout.state)
        state = if let bytes { try StoreState(bytes: bytes) } else { StoreState() }
        do {
            identity = Store.isDurable ? try Self.identity(of: store, host) : 0
        } catch {
            store.close()
            throw error
        }
    }

    private static func identity(of store: Store, _ host: Host) throws(StorageFailure) -> UInt64 {
        let stored = try store.storedValue(for: KeyLayout.identity)
        let known = stored.map { bytes in bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
        try host.requireStorage(known ?? 0, in: "the store")
        if let known { return known }
        let number = History.makeIdentity()
        try store.change([KeyLayout.identity: number.bigEndianBytes], host)
        return number
    }

    public let identity: UInt64

    public var lastSequence: UInt64 { state.sequenceCeiling }

    public func openReader() throws(StorageFailure) -> KeyValueReader<Store> { KeyValueReader(store) }

    public func close() { store.close() }

    // MARK: Collections

    public func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> KeyValueCollection {
        let key = KeyLayout.collection(specification.name, specification.format)
        var entry: CollectionEntry
        if let bytes = try store.storedValue(for: key) {
            entry = try CollectionEntry(bytes: bytes)
        } else if specification.creates {
            entry = CollectionEntry(number: try takeNumber())
            try store.change([key: entry.bytes], host)
        } else {
            throw StorageFailure(.notFound, "there is no such collection")
        }
        if specification.isAsItIs {
            let collection = collections[key] ?? KeyValueCollection(layout: entry.layout)
            collection.indexes = entry.indexes.map(\.number)
            collection.keepsHistory = entry.identity != 0
            collections[key] = collection
            return collection
        }
        let names = (0..<specification.indexCount).map { Array(specification.index(at: $0)) }
        try update(&entry, at: key, indexes: names, keepsHistory: specification.keepsSequences)
        let collection = collections[key] ?? KeyValueCollection(layout: entry.layout)
        collection.indexes = entry.indexes.map(\.number)
        collection.keepsHistory = specification.keepsSequences
        collections[key] = collection
        return collection
    }

    /// Gives a collection these indexes and no others, and a history or none. What has no place in an order yet gets
    /// one before the collection has that order, and an order is removed after the collection has lost it.
    private func update(
        _ entry: inout CollectionEntry, at key: StoredKey, indexes names: [[UInt8]], keepsHistory: Bool
    ) throws(StorageFailure) {
        let layout = entry.layout
        let old = entry.indexes
        var indexes: [CollectionEntry.Index] = []
        for name in names {
            if let index = old.first(where: { $0.name == name }) {
                indexes.append(index)
                continue
            }
            let index = CollectionEntry.Index(number: try takeNumber(), name: name)
            try insertRecords(layout) { id, _ in (layout.entry(index.number, key: [], id: id), []) }
            indexes.append(index)
        }
        entry.indexes = indexes
        let hadHistory = entry.identity != 0
        if keepsHistory, !hadHistory {
            try clear(layout.history)
            try insertRecords(layout) { id, record in (layout.sequence(record, id), id) }
        }
        if keepsHistory != hadHistory {
            entry.identity = keepsHistory ? History.makeIdentity() : 0
            entry.forgotten = 0
        }
        let dropped = old.filter { index in !indexes.contains { $0.number == index.number } }
        let isSame = old.map(\.number) == indexes.map(\.number) && keepsHistory == hadHistory
        if !isSame { try store.change([key: entry.bytes], host) }
        for index in dropped { try clear(layout.index(index.number)) }
        if hadHistory, !keepsHistory { try clear(layout.history) }
    }

    /// Gives each record of a collection a place in an order.
    private func insertRecords(
        _ layout: KeyLayout, _ pair: ([UInt8], StoredRecord) -> (key: StoredKey, value: [UInt8])
    ) throws(StorageFailure) {
        try forEach(in: layout.records(IDRange(lower: [], upper: nil))) { pairs throws(StorageFailure) in
            var changes: [StoredKey: [UInt8]?] = [:]
            for record in pairs {
                let new = pair(Array(layout.id(inRecord: record.key)), StoredRecord(bytes: record.value))
                changes[new.key] = new.value
            }
            try store.change(changes, host)
        }
    }

    /// Removes everything in a range.
    private func clear(_ range: Range<StoredKey>) throws(StorageFailure) {
        try forEach(in: range) { pairs throws(StorageFailure) in
            try store.change(Dictionary(uniqueKeysWithValues: pairs.map { ($0.key, nil) }), host)
        }
    }

    private func forEach(
        in range: Range<StoredKey>, _ body: ([(key: StoredKey, value: [UInt8])]) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        var rest = range
        var count: UInt64 = 0
        while true {
            let pairs = try store.storedPairs(in: rest, limit: Self.pairsAtOnce)
            guard let last = pairs.last else { return }
            try body(pairs)
            count += UInt64(pairs.count)
            host.progress(count)
            rest = rest.resumed(after: last.key, isReversed: false)
        }
    }

    /// A number that no collection and no index has had.
    private func takeNumber() throws(StorageFailure) -> UInt32 {
        var next = state
        let number = next.nextNumber
        let (following, overflows) = number.addingReportingOverflow(1)
        if overflows { throw StorageFailure(.noSpace, "no further collection or index can be made") }
        next.nextNumber = following
        try store.change([KeyLayout.state: next.bytes], host)
        state = next
        return number
    }

    public func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        let entries = try store.storedPairs(in: KeyLayout.collections(named: name), limit: Self.pairsAtOnce)
        if entries.isEmpty { throw StorageFailure(.notFound, "there is no such collection") }
        try store.change(Dictionary(uniqueKeysWithValues: entries.map { ($0.key, nil) }), host)
        for entry in entries {
            collections[entry.key] = nil
            try clear(try CollectionEntry(bytes: entry.value).layout.everything)
        }
    }

    public func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure) {
        var last: [UInt8] = []
        try forEach(in: KeyLayout.collections) { pairs throws(StorageFailure) in
            for pair in pairs {
                let name = Array(KeyLayout.name(in: pair.key))
                if name != last { emit(name.span.bytes) }
                last = name
            }
        }
    }

    // MARK: Writing

    public func write(_ batch: borrowing WriteBatch<KeyValueCollection>) throws(StorageFailure) {
        var draft = KeyValueDraft(store)
        for position in 0..<batch.count {
            let isApplied = try apply(batch[position], position, batch, &draft)
            if !isApplied, batch.isAtomic { return }
        }
        try commit(draft)
    }

    private func apply(
        _ mutation: Mutation<KeyValueCollection>, _ position: Int, _ batch: borrowing WriteBatch<KeyValueCollection>,
        _ draft: inout KeyValueDraft<Store>
    ) throws(StorageFailure) -> Bool {
        let collection = mutation.collection
        let id = Array(mutation.id)
        let old = try draft.record(id, of: collection)
        // The batch reads the revision before `permits` returns.
        let isPermitted = old?.revision.withUnsafeBytes {
            batch.permits(mutation, at: position, current: ($0, old?.expiresAt ?? 0))
        }
        guard isPermitted ?? batch.permits(mutation, at: position, current: nil) else { return false }
        var keys: [UInt32: [UInt8]] = [:]
        for (position, index) in collection.indexes.enumerated() { keys[index] = Array(mutation.keys[position]) }
        var isReplaced = false
        switch mutation.kind {
        case .put:
            isReplaced = old.map { !batch.call.hasExpired($0.expiresAt) } ?? false
            let new = StoredRecord(
                expiresAt: mutation.expiresAt, sequence: mutation.sequence, keys: keys,
                revision: Array(mutation.revision), item: Array(mutation.item))
            draft.replace(old, by: new, id, of: collection)
        case .setKeys:
            var new = old
            new?.keys = keys
            draft.replace(old, by: new, id, of: collection)
        case .remove:
            if let old { draft.remove(old, id, of: collection, sequence: mutation.sequence, at: batch.now) }
        default: break
        }
        return batch.applied(position, replacing: isReplaced)
    }

    private func commit(_ draft: KeyValueDraft<Store>) throws(StorageFailure) {
        if draft.changes.isEmpty { return }
        var draft = draft
        var next = state
        if draft.highestSequence > state.sequenceCeiling {
            next.sequenceCeiling = SequenceBlock.last(of: draft.highestSequence)
            draft.set(KeyLayout.state, to: next.bytes)
        }
        try store.change(draft.changes, host)
        state = next
    }

    // MARK: Expiry and removals

    public func removeExpired(
        _ request: borrowing ExpiryRequest<KeyValueCollection>
    ) throws(StorageFailure) -> Int64? {
        let collection = request.collection
        let layout = collection.layout
        let due = layout.expiring.lowerBound..<layout.expiry(request.now, CollectionOfOne(255))
        var draft = KeyValueDraft(store)
        var removed: [[UInt8]] = []
        for pair in try store.storedPairs(in: due, limit: request.limit) {
            let id = Array(layout.expiryAndID(in: pair.key).id)
            // What replaced a damaged record may have left the pair of that one behind.
            draft.set(pair.key, to: nil)
            guard let record = try draft.record(id, of: collection), layout.expiry(record.expiresAt, id) == pair.key
            else { continue }
            let sequence = request.firstSequence &+ UInt64(removed.count)
            draft.remove(record, id, of: collection, sequence: sequence, at: request.now)
            removed.append(id)
        }
        try commit(draft)
        for (index, id) in removed.enumerated() { request.emit(index, id: id.span.bytes) }
        let next = try store.storedPairs(in: layout.expiring, limit: 1).first
        return next.map { layout.expiryAndID(in: $0.key).expiresAt }
    }

    public func trimHistory(
        _ request: borrowing TrimRequest<KeyValueCollection>
    ) throws(StorageFailure) -> History {
        let collection = request.collection
        let layout = collection.layout
        guard let key = collections.first(where: { $0.value === collection })?.key,
            let bytes = try store.storedValue(for: key), collection.keepsHistory
        else { throw StorageFailure(.unsupported, "the collection was not opened with sequence numbers") }
        var entry = try CollectionEntry(bytes: bytes)
        var changes: [StoredKey: [UInt8]?] = [:]
        var trimmed = 0
        for pair in try store.storedPairs(in: layout.removals, limit: request.limit) {
            let sequence = UInt64(bigEndian: pair.key.bytes.suffix(8))
            let removal = try store.storedValue(for: layout.sequence(sequence))
            guard removal.map({ Int64(bigEndian: $0.dropFirst().prefix(8)) < request.before }) ?? true else { break }
            changes.updateValue(nil, forKey: pair.key)
            changes.updateValue(nil, forKey: layout.sequence(sequence))
            entry.forgotten = max(entry.forgotten, sequence)
            trimmed += 1
        }
        if trimmed > 0 {
            changes[key] = entry.bytes
            try store.change(changes, host)
        }
        return History(identity: entry.identity, forgotten: entry.forgotten, trimmed: trimmed)
    }
}

/// An open collection of a ``KeyValueBackend``.
public final class KeyValueCollection {
    let layout: KeyLayout
    /// The numbers of its indexes, in the order of its specification.
    var indexes: [UInt32] = []
    /// Whether it keeps the order of sequence numbers, and what was removed.
    var keepsHistory = false

    init(layout: KeyLayout) {
        self.layout = layout
    }
}
