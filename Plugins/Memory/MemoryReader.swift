import CRUDPluginKit

/// Reads what has been published last; it holds no view between calls.
final class MemoryReader: StorageReader {
    func read(_ request: borrowing ReadRequest, from collection: MemoryCollection) throws(StorageFailure) {
        let tree = collection.snapshot
        for position in 0..<request.count {
            guard let record = tree.record(request.id(at: position)) else { continue }
            let bytes = record.bytes.span.bytes
            let item = bytes.extracting(request.wantsItems ? record.itemRange : 0..<0)
            guard request.emit(position, item: item, revision: bytes.extracting(record.revisionRange)) else { return }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: MemoryCollection) throws(StorageFailure) {
        let limit = request.limit ?? .max
        var position = 0
        collection.snapshot.walk(IDRange(after: request.after, prefix: request.prefix)) { record in
            let bytes = record.bytes.span.bytes
            let item = bytes.extracting(request.wantsItems ? record.itemRange : 0..<0)
            let isWanted = request.emit(
                position, id: bytes.extracting(record.idRange), item: item,
                revision: bytes.extracting(record.revisionRange))
            position += 1
            return isWanted && position < limit
        }
    }

    func count(
        prefix: UnsafeRawBufferPointer, in collection: MemoryCollection
    ) throws(StorageFailure) -> UInt64 {
        let everything = UnsafeRawBufferPointer(start: nil, count: 0)
        return UInt64(collection.snapshot.count(IDRange(after: everything, prefix: prefix)))
    }

    func close() {}
}
