import Glibc

extension Record {
    /// What remembers that a record was removed.
    init(removalOf record: Record, sequence: UInt64, at now: Int64) {
        self = record.withPosition { Record(removalOf: $0, in: record.collection, sequence: sequence, at: now) }
    }

    /// What remembers that the record with that id was removed.
    init(removalOf id: UnsafeRawBufferPointer, in collection: UInt32, sequence: UInt64, at now: Int64) {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        self.init(
            .removal, in: collection, id: id, item: none, revision: none, expiresAt: now, sequence: sequence, keys: [])
    }
}

/// An element of one of the trees of a collection.
protocol RecordEntry: TreeElement {
    /// Of one that was removed the id alone.
    var record: Record { get }
    var isRemoved: Bool { get }
}

extension RecordEntry {
    var expiry: Int64 { record.expiresAt == 0 ? .max : record.expiresAt }
    var isRemoved: Bool { false }
}

/// Ordered by id.
extension Record: RecordEntry {
    var record: Record { self }

    func withPosition<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withBytes { body(UnsafeRawBufferPointer(rebasing: $0[idRange])) }
    }
}

/// Ids and keys: in the order of their bytes, a shorter one before those that it begins.
extension UnsafeRawBufferPointer: TreePosition {
    func compare(to other: UnsafeRawBufferPointer) -> Int {
        let shared = Swift.min(count, other.count)
        guard shared > 0, let start = baseAddress, let otherStart = other.baseAddress else {
            return count - other.count
        }
        // Both have at least `shared` bytes.
        let order = unsafe memcmp(start, otherStart, shared)
        return order != 0 ? Int(order) : count - other.count
    }

    var prefix: PositionPrefix { PositionPrefix(self) }
}

/// A record in an index: ordered by its key there, then by id.
struct KeyedRecord: RecordEntry {
    struct Position: TreePosition {
        let key: UnsafeRawBufferPointer
        let id: UnsafeRawBufferPointer

        func compare(to other: Position) -> Int {
            let order = key.compare(to: other.key)
            return order != 0 ? order : id.compare(to: other.id)
        }

        var prefix: PositionPrefix { key.prefix }
    }

    let record: Record
    /// Where the key lies in the record.
    private let keyStart: UInt32
    private let keySize: UInt32

    /// Nil if the record has no key in the index with that number.
    init?(_ record: Record, index: UInt32) {
        guard let key = record.keyRange(of: index) else { return nil }
        self.record = record
        keyStart = UInt32(key.lowerBound)
        keySize = UInt32(key.count)
    }

    func withPosition<Result>(_ body: (Position) -> Result) -> Result {
        record.withBytes { bytes in
            let key = bytes[Int(keyStart)..<Int(keyStart + keySize)]
            return body(
                Position(
                    key: UnsafeRawBufferPointer(rebasing: key),
                    id: UnsafeRawBufferPointer(rebasing: bytes[record.idRange])))
        }
    }
}

/// A record that expires, ordered by when it does, then by id.
struct ExpiringRecord: RecordEntry {
    struct Position: TreePosition {
        let expiresAt: Int64
        let id: UnsafeRawBufferPointer

        func compare(to other: Position) -> Int {
            if expiresAt != other.expiresAt { return expiresAt < other.expiresAt ? -1 : 1 }
            return id.compare(to: other.id)
        }

        /// By the order of unsigned numbers.
        var prefix: PositionPrefix {
            PositionPrefix(UInt64(bitPattern: expiresAt) ^ 1 << 63, id.prefix.high)
        }
    }

    let record: Record

    /// Nil if the record never expires.
    init?(_ record: Record) {
        if record.expiresAt == 0 { return nil }
        self.record = record
    }

    func withPosition<Result>(_ body: (Position) -> Result) -> Result {
        record.withPosition { body(Position(expiresAt: record.expiresAt, id: $0)) }
    }
}

/// A record ordered by its sequence number, or one that was removed, by that of its removal. (Then by id: two with one
/// number would be an error of the host's, but neither may hide the other.)
struct SequencedRecord: RecordEntry {
    struct Position: TreePosition {
        let sequence: UInt64
        let id: UnsafeRawBufferPointer

        func compare(to other: Position) -> Int {
            if sequence != other.sequence { return sequence < other.sequence ? -1 : 1 }
            return id.compare(to: other.id)
        }

        var prefix: PositionPrefix { PositionPrefix(sequence, id.prefix.high) }
    }

    /// Of one that was removed the id alone.
    let record: Record
    var sequence: UInt64 { record.sequence }
    /// Nil if the record has no sequence number.
    init?(_ record: Record) {
        guard record.sequence != 0 else { return nil }
        self.record = record
    }

    /// A removal.
    init(removal: Record) {
        record = removal
    }

    var isRemoved: Bool { record.kind == .removal }

    /// When it was removed, in milliseconds since 1970-01-01 UTC; nil: it is there.
    var removedAt: Int64? { isRemoved ? record.expiresAt : nil }

    /// What was removed is not counted.
    var expiry: Int64 {
        if isRemoved { return .min }
        return record.expiresAt == 0 ? .max : record.expiresAt
    }

    func withPosition<Result>(_ body: (Position) -> Result) -> Result {
        record.withPosition { body(Position(sequence: sequence, id: $0)) }
    }
}
