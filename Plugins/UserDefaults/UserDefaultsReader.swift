import CRUDPluginKit

/// Reads what the suite holds now; it holds no view between calls, so that what people edit is seen at once.
final class UserDefaultsReader: StorageReader {
    private let suite: Suite

    init(_ suite: Suite) {
        self.suite = suite
    }

    func read(_ request: borrowing ReadRequest, from collection: UserDefaultsCollection) throws(StorageFailure) {
        let table = try suite.current()[collection]
        for position in 0..<request.count {
            guard let record = table.record(request.id(at: position)) else { continue }
            let item = request.wantsItems ? record.item : []
            guard request.emit(position, item: item.span.bytes, revision: record.revision.span.bytes) else { return }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: UserDefaultsCollection) throws(StorageFailure) {
        let range = IDRange(after: request.after, prefix: request.prefix)
        let records = try suite.current()[collection].records(in: range).prefix(request.limit ?? .max)
        for (position, record) in records.enumerated() {
            let item = request.wantsItems ? record.item : []
            guard
                request.emit(
                    position, id: record.id.span.bytes, item: item.span.bytes, revision: record.revision.span.bytes)
            else { return }
        }
    }

    func count(
        prefix: UnsafeRawBufferPointer, in collection: UserDefaultsCollection
    ) throws(StorageFailure) -> UInt64 {
        let everything = UnsafeRawBufferPointer(start: nil, count: 0)
        let range = IDRange(after: everything, prefix: prefix)
        return UInt64(try suite.current()[collection].records(in: range).count)
    }

    func close() {}
}
