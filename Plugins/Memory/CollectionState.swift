import CRUDPluginKit

/// What the log stores of a collection: everything but its records, and what it remembers of those that were removed.
struct CollectionState: Equatable {
    var name: [UInt8]
    var format: [UInt8]
    /// 0: there is no order by sequence.
    var historyIdentity: UInt64 = 0
    var forgotten: UInt64 = 0
    /// The numbers and names of the indexes, in their order.
    var indexes: [Index] = []
    /// How many indexes there ever were.
    var indexesMade: UInt32 = 0

    struct Index: Equatable {
        var number: UInt32
        var name: [UInt8]
    }

    /// As the log stores it.
    func record(number: UInt32) -> Record {
        var bytes: [UInt8] = []
        func append(_ value: some BitwiseCopyable) { withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) } }
        append(historyIdentity)
        append(forgotten)
        append(indexesMade)
        append(UInt32(indexes.count))
        for text in [name, format] {
            append(UInt32(text.count))
            bytes += text
        }
        for index in indexes {
            append(index.number)
            append(UInt32(index.name.count))
            bytes += index.name
        }
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        return bytes.withUnsafeBytes {
            Record(
                .collection, in: number, id: none, item: $0, revision: none, expiresAt: 0, sequence: 0, keys: [])
        }
    }

    init(_ collection: MemoryCollection, _ records: RecordSet) {
        self.init(
            name: collection.name, format: collection.format,
            historyIdentity: records.bySequence?.identity ?? 0, forgotten: records.bySequence?.forgotten ?? 0,
            indexes: records.indexes.map { Index(number: $0.number, name: $0.name) },
            indexesMade: records.indexesMade)
    }

    /// Nil for what is none.
    init?(_ record: Record) {
        var rest = record.withBytes { Array($0)[...] }
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func integer<Integer: FixedWidthInteger & BitwiseCopyable>(_: Integer.Type) -> Integer? {
            take(MemoryLayout<Integer>.size)?.withUnsafeBytes { $0.loadUnaligned(as: Integer.self) }
        }
        func text() -> [UInt8]? { integer(UInt32.self).flatMap { take(Int($0)) }.map { Array($0) } }
        guard let identity = integer(UInt64.self), let forgotten = integer(UInt64.self),
            let indexesMade = integer(UInt32.self), let count = integer(UInt32.self), let name = text(),
            let format = text()
        else { return nil }
        self.init(
            name: name, format: format, historyIdentity: identity, forgotten: forgotten, indexesMade: indexesMade)
        for _ in 0..<count {
            guard let number = integer(UInt32.self), let name = text() else { return nil }
            indexes.append(Index(number: number, name: name))
        }
        guard rest.isEmpty else { return nil }
    }

    init(
        name: [UInt8], format: [UInt8], historyIdentity: UInt64 = 0, forgotten: UInt64 = 0, indexes: [Index] = [],
        indexesMade: UInt32 = 0
    ) {
        self.name = name
        self.format = format
        self.historyIdentity = historyIdentity
        self.forgotten = forgotten
        self.indexes = indexes
        self.indexesMade = indexesMade
    }
}
