import CRUDPluginKit

/// Reads what has been published last; it holds no snapshot between calls.
final class MemoryReader: StorageReader {
    /// How many records are visited before the host is asked whether anybody still waits.
    private static let visitsPerInterruptCheck = 1024

    func read(_ request: borrowing ReadRequest, from collection: MemoryCollection) throws(StorageFailure) {
        let records = collection.snapshot.byID
        for position in 0..<request.count {
            guard let record = records.element(at: request.id(at: position)) else { continue }
            let isWanted = record.withSpan { bytes in
                request.emit(
                    position, item: bytes.extracting(request.wantsItems ? record.itemRange : 0..<0),
                    revision: bytes.extracting(record.revisionRange), expiresAt: record.expiresAt,
                    sequence: record.sequence)
            }
            guard isWanted else { return }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: MemoryCollection) throws(StorageFailure) {
        let records = collection.snapshot
        let range = request.range
        func resumed<Position>(_ range: TreeRange<Position>, _ position: Position) -> TreeRange<Position> {
            request.afterID.isEmpty ? range : range.resumed(behind: position, isReversed: request.isReversed)
        }
        switch range.order {
        case .id:
            try emit(records.byID, resumed(range.idBounds, request.afterID), for: request)
        case .key(let index) where range.isUnkeyed:
            try emit(records.index(index).unkeyed, resumed(range.idBounds, request.afterID), for: request)
        case .key(let index):
            let last = KeyedRecord.Position(key: request.afterKey, id: request.afterID)
            try emit(records.index(index).keyed, resumed(range.keyBounds, last), for: request)
        case .sequence where range.isUnsequenced:
            try emit(records.sequences().unnumbered, resumed(range.idBounds, request.afterID), for: request)
        case .sequence:
            try emit(records.sequences().entries, range.sequenceBounds, for: request)
        }
    }

    private func emit<Entry: RecordEntry>(
        _ tree: OrderedTree<Entry>, _ range: TreeRange<Entry.Position>, for request: borrowing ScanRequest
    ) throws(StorageFailure) {
        var visits = 0
        var isInterrupted = false
        tree.visit(range, isReversed: request.isReversed) { entry in
            visits += 1
            isInterrupted = visits.isMultiple(of: Self.visitsPerInterruptCheck) && request.isInterrupted
            if isInterrupted { return false }
            let record = entry.record
            return record.withSpan { bytes in
                if entry.isRemoved {
                    return request.emitRemoval(id: bytes.extracting(record.idRange), sequence: record.sequence)
                }
                return request.emit(
                    id: bytes.extracting(record.idRange),
                    item: bytes.extracting(request.wantsItems ? record.itemRange : 0..<0),
                    revision: bytes.extracting(record.revisionRange), expiresAt: record.expiresAt,
                    sequence: record.sequence)
            }
        }
        if isInterrupted { throw .interrupted }
    }

    func count(_ request: borrowing CountRequest, in collection: MemoryCollection) throws(StorageFailure) -> UInt64 {
        let records = collection.snapshot
        let range = request.range
        let count =
            switch range.order {
            case .id: records.byID.count(range.idBounds, at: request.now)
            case .key(let index) where range.isUnkeyed:
                try records.index(index).unkeyed.count(range.idBounds, at: request.now)
            case .key(let index): try records.index(index).keyed.count(range.keyBounds, at: request.now)
            case .sequence where range.isUnsequenced:
                try records.sequences().unnumbered.count(range.idBounds, at: request.now)
            case .sequence: try records.sequences().entries.count(range.sequenceBounds, at: request.now)
            }
        return UInt64(count)
    }

    /// Nobody else can write.
    func dataVersion() -> UInt64 { 1 }

    func close() {}
}

extension RecordSet {
    fileprivate func index(_ position: Int) throws(StorageFailure) -> RecordIndex {
        guard indexes.indices.contains(position) else {
            throw StorageFailure(.unsupported, "the collection has no index \(position)")
        }
        return indexes[position]
    }

    fileprivate func sequences() throws(StorageFailure) -> SequenceOrder {
        guard let bySequence else {
            throw StorageFailure(.unsupported, "the collection was not opened with sequence numbers")
        }
        return bySequence
    }
}

extension RecordRange {
    fileprivate var idBounds: TreeRange<UnsafeRawBufferPointer> {
        TreeRange(lower: lower.isEmpty ? nil : .before(lower), upper: upper.isEmpty ? nil : .before(upper))
    }

    /// No id is empty, so that an empty one lies before all records of a key.
    fileprivate var keyBounds: TreeRange<KeyedRecord.Position> {
        func cut(_ key: UnsafeRawBufferPointer) -> Cut<KeyedRecord.Position>? {
            key.isEmpty ? nil : .before(KeyedRecord.Position(key: key, id: .empty))
        }
        return TreeRange(lower: cut(lower), upper: cut(upper))
    }

    fileprivate var sequenceBounds: TreeRange<SequencedRecord.Position> {
        func cut(_ sequence: UInt64) -> Cut<SequencedRecord.Position> {
            .before(SequencedRecord.Position(sequence: sequence, id: .empty))
        }
        return TreeRange(lower: cut(lowerSequence), upper: upperSequence.map(cut))
    }
}

extension UnsafeRawBufferPointer {
    fileprivate static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}
