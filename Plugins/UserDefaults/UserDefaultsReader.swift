import CRUDPluginKit

/// Reads what the suite holds now; it holds no snapshot between calls, so that what people edit is seen at once.
final class UserDefaultsReader: StorageReader {
    private let suite: Suite
    /// How many records a scan emits before it asks whether anybody still waits.
    private static let recordsBetweenChecks = 256

    init(_ suite: Suite) {
        self.suite = suite
    }

    func read(_ request: borrowing ReadRequest, from collection: UserDefaultsCollection) throws(StorageFailure) {
        let table = try suite.current(request.call)[collection]
        for position in 0..<request.count {
            guard let record = table.record(request.id(at: position)) else { continue }
            let item = request.wantsItems ? record.item : []
            let isWanted = request.emit(
                position, item: item.span.bytes, revision: record.revision.span.bytes, expiresAt: record.expiresAt,
                sequence: record.sequence)
            guard isWanted else { return }
        }
    }

    func scan(_ request: borrowing ScanRequest, of collection: UserDefaultsCollection) throws(StorageFailure) {
        let records = try suite.current(request.call)[collection].records(in: request.ids)
        for offset in 0..<records.count {
            if offset.isMultiple(of: Self.recordsBetweenChecks), request.isInterrupted { throw .interrupted }
            let record = records[request.isReversed ? records.endIndex - 1 - offset : records.startIndex + offset]
            let item = request.wantsItems ? record.item : []
            let isWanted = request.emit(
                id: record.id.span.bytes, item: item.span.bytes, revision: record.revision.span.bytes,
                expiresAt: record.expiresAt, sequence: record.sequence)
            guard isWanted else { return }
        }
    }

    func count(
        _ request: borrowing CountRequest, in collection: UserDefaultsCollection
    ) throws(StorageFailure) -> UInt64 {
        let call = request.call
        let records = try suite.current(call)[collection].records(in: request.range.ids)
        return UInt64(records.count { !call.hasExpired($0.expiresAt) })
    }

    func close() {}
}
