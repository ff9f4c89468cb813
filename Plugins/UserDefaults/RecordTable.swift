import CRUDPluginKit

/// Records by id: an array in the order of the ids' bytes. A change moves the records behind it, which is little beside
/// the whole list that is written for it.
struct RecordTable {
    struct Record {
        let id: [UInt8]
        let item: [UInt8]
        let revision: [UInt8]
        /// In milliseconds since 1970-01-01 UTC; 0: never.
        let expiresAt: Int64
        /// 0: the record was written by somebody else.
        let sequence: UInt64
    }

    private(set) var records: [Record]

    /// - Parameter records: in any order, no two with the same id.
    init(_ records: [Record] = []) {
        self.records = records.sorted { $0.id.lexicographicallyPrecedes($1.id) }
    }

    func record(_ id: UnsafeRawBufferPointer) -> Record? {
        let index = index(id)
        return index < records.count && records[index].id.elementsEqual(id) ? records[index] : nil
    }

    mutating func insert(_ record: Record) {
        let index = index(record.id)
        if index < records.count, records[index].id == record.id {
            records[index] = record
        } else {
            records.insert(record, at: index)
        }
    }

    mutating func remove(_ id: [UInt8]) {
        let index = index(id)
        if index < records.count, records[index].id == id { records.remove(at: index) }
    }

    /// The records that have expired, those that expired first first.
    func expired(_ call: CallContext, limit: Int) -> ArraySlice<Record> {
        // They are in the order of their ids, in which the sort leaves those that expire at the same time.
        records.filter { call.hasExpired($0.expiresAt) }.sorted { $0.expiresAt < $1.expiresAt }.prefix(limit)
    }

    /// When the next record expires; nil: none does.
    var nextExpiry: Int64? { records.lazy.map(\.expiresAt).filter { $0 != 0 }.min() }

    /// The records of a range, in order.
    func records(in range: IDRange) -> ArraySlice<Record> {
        let lower = index(range.lower)
        return records[lower..<max(lower, range.upper.map(index) ?? records.count)]
    }

    /// The index of the first record that does not stand before `id`.
    private func index(_ id: some Collection<UInt8>) -> Int {
        var (lower, upper) = (0, records.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if records[middle].id.lexicographicallyPrecedes(id) { lower = middle + 1 } else { upper = middle }
        }
        return lower
    }
}
