/// Reads the records of a ``KeyValueBackend``, always as they are now.
public final class KeyValueReader<Store: KeyValueStore>: StorageReader {
    private let store: Store

    /// How many pairs of the store a scan reads at once.
    private static var pairsAtOnce: Int { 256 }
    /// How many records are visited before a scan looks whether it is interrupted.
    private static var recordsBetweenChecks: Int { 16 }

    init(_ store: Store) {
        self.store = store
    }

    public func close() {}

    public func read(_ request: borrowing ReadRequest, from collection: KeyValueCollection) throws(StorageFailure) {
        for position in 0..<request.count {
            let id = request.id(at: position)
            guard let bytes = try store.storedValue(for: collection.layout.record(id)) else { continue }
            let record = StoredRecord(bytes: bytes)
            let isWanted = request.emit(
                position, item: request.wantsItems ? record.item.span.bytes : RawSpan(),
                revision: record.revision.span.bytes, expiresAt: record.expiresAt, sequence: record.sequence)
            if !isWanted { return }
        }
    }

    public func scan(_ request: borrowing ScanRequest, of collection: KeyValueCollection) throws(StorageFailure) {
        var range = try range(request.range, of: collection)
        if let last = try position(request, in: collection) {
            range = range.resumed(after: last, isReversed: request.isReversed)
        }
        try visit(range, isReversed: request.isReversed, request.range, of: collection, request.call) { found in
            switch found {
            case .removal(let id, let sequence): request.emitRemoval(id: id.span.bytes, sequence: sequence)
            case .record(let id, let record):
                request.emit(
                    id: id.span.bytes, item: request.wantsItems ? record.item.span.bytes : RawSpan(),
                    revision: record.revision.span.bytes, expiresAt: record.expiresAt, sequence: record.sequence)
            }
        }
    }

    public func count(
        _ request: borrowing CountRequest, in collection: KeyValueCollection
    ) throws(StorageFailure) -> UInt64 {
        var count: UInt64 = 0
        let range = try range(request.range, of: collection)
        try visit(range, isReversed: false, request.range, of: collection, request.call) { found in
            if case .record(_, let record) = found, !request.call.hasExpired(record.expiresAt) { count += 1 }
            return count != request.limit
        }
        return count
    }

    // MARK: Ranges

    /// Where the pairs of a range stand.
    ///
    /// - Throws: ``StorageFailure`` with `unsupported` for an order that the collection does not have.
    private func range(
        _ range: RecordRange, of collection: KeyValueCollection
    ) throws(StorageFailure) -> Range<StoredKey> {
        let layout = collection.layout
        switch range.order {
        case .id: return layout.records(range.ids)
        case .key(let position):
            let index = try collection.index(position)
            if range.isUnkeyed { return layout.unkeyed(index, range.ids) }
            return layout.keyed(index, lower: range.lower, upper: range.upper)
        case .sequence:
            guard collection.keepsHistory else {
                throw StorageFailure(.unsupported, "the collection was not opened with sequence numbers")
            }
            if range.isUnsequenced { return layout.unsequenced(range.ids) }
            return layout.sequences(lower: range.lowerSequence, upper: range.upperSequence)
        }
    }

    /// Where the last record of a scan that resumes stands; nil: it starts.
    private func position(
        _ request: borrowing ScanRequest, in collection: KeyValueCollection
    ) throws(StorageFailure) -> StoredKey? {
        if request.afterID.isEmpty { return nil }
        let layout = collection.layout
        switch request.range.order {
        case .id: return layout.record(request.afterID)
        case .key(let position):
            return layout.entry(try collection.index(position), key: request.afterKey, id: request.afterID)
        case .sequence: return layout.unsequenced(IDRange(lower: Array(request.afterID), upper: nil)).lowerBound
        }
    }

    // MARK: Visiting

    private enum Found {
        case record([UInt8], StoredRecord)
        case removal([UInt8], UInt64)
    }

    /// Visits what a range has until `body` returns false.
    private func visit(
        _ keys: Range<StoredKey>, isReversed: Bool, _ range: RecordRange, of collection: KeyValueCollection,
        _ call: CallContext, _ body: (Found) -> Bool
    ) throws(StorageFailure) {
        var rest = keys
        while true {
            let pairs = try store.storedPairs(in: rest, isReversed: isReversed, limit: Self.pairsAtOnce)
            guard let last = pairs.last else { return }
            for (position, pair) in pairs.enumerated() {
                if position % Self.recordsBetweenChecks == 0, call.isInterrupted { throw .interrupted }
                guard let found = try found(pair, range, of: collection) else { continue }
                if !body(found) { return }
            }
            rest = rest.resumed(after: last.key, isReversed: isReversed)
        }
    }

    /// What a pair of a range stands for; nil where its record is not there, or has another place in the order: a
    /// record that was damaged leaves its pairs behind when it is replaced.
    private func found(
        _ pair: (key: StoredKey, value: [UInt8]), _ range: RecordRange, of collection: KeyValueCollection
    ) throws(StorageFailure) -> Found? {
        let layout = collection.layout
        let id: [UInt8]
        switch range.order {
        case .id: return .record(Array(layout.id(inRecord: pair.key)), StoredRecord(bytes: pair.value))
        case .key: id = Array(layout.id(inEntry: pair.key))
        case .sequence:
            if pair.value.first == 0 {
                return .removal(Array(pair.value.dropFirst(9)), UInt64(bigEndian: pair.key.bytes.suffix(8)))
            }
            id = pair.value
        }
        guard let bytes = try store.storedValue(for: layout.record(id)) else { return nil }
        let record = StoredRecord(bytes: bytes)
        return record.isCorrupt || pair.key == place(of: record, id, range, collection) ? .record(id, record) : nil
    }
}

extension KeyValueReader {
    /// The key of a record's pair in an order.
    private func place(
        of record: StoredRecord, _ id: [UInt8], _ range: RecordRange, _ collection: KeyValueCollection
    ) -> StoredKey {
        guard case .key(let position) = range.order else { return collection.layout.sequence(record, id) }
        let index = collection.indexes[position]
        return collection.layout.entry(index, key: record.key(index), id: id)
    }
}

extension KeyValueCollection {
    /// The number of an index.
    ///
    /// - Throws: ``StorageFailure`` with `unsupported` if there is none.
    fileprivate func index(_ position: Int) throws(StorageFailure) -> UInt32 {
        guard indexes.indices.contains(position) else {
            throw StorageFailure(.unsupported, "the collection has no index \(position)")
        }
        return indexes[position]
    }
}
