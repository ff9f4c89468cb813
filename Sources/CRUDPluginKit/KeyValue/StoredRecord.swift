import CRUDPluginABI

/// A record as a ``KeyValueBackend`` stores it.
struct StoredRecord {
    var expiresAt: Int64
    var sequence: UInt64
    /// By the numbers of the indexes; an index that is missing, or has an empty key, has none.
    var keys: [UInt32: [UInt8]]
    var revision: [UInt8]
    var item: [UInt8]
    /// Whether it could not be decoded.
    private(set) var isCorrupt = false

    /// The key of an index; empty: none.
    func key(_ index: UInt32) -> [UInt8] { keys[index] ?? [] }

    // MARK: Bytes

    var bytes: [UInt8] {
        var bytes = expiresAt.bigEndianBytes + sequence.bigEndianBytes + UInt16(clamping: keys.count).bigEndianBytes
        for (index, key) in keys { bytes += index.bigEndianBytes + UInt16(clamping: key.count).bigEndianBytes + key }
        return bytes + [UInt8(clamping: revision.count)] + revision + item
    }

    /// One that cannot be decoded has no item, which the host takes for a corrupt record.
    init(bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        if let record = Self(&reader), RecordRules.isValidRevision(record.revision.span.bytes) {
            self = record
        } else {
            self.init(expiresAt: 0, sequence: 0, keys: [:], revision: Array("corrupt".utf8), item: [])
            isCorrupt = true
        }
    }

    init(expiresAt: Int64, sequence: UInt64, keys: [UInt32: [UInt8]], revision: [UInt8], item: [UInt8]) {
        self.expiresAt = expiresAt
        self.sequence = sequence
        self.keys = keys
        self.revision = revision
        self.item = item
    }

    private init?(_ reader: inout ByteReader) {
        guard let expiresAt = reader.integer(Int64.self), let sequence = reader.integer(UInt64.self),
            let count = reader.integer(UInt16.self)
        else { return nil }
        var keys: [UInt32: [UInt8]] = [:]
        for _ in 0..<count {
            guard let index = reader.integer(UInt32.self), let size = reader.integer(UInt16.self),
                let key = reader.bytes(Int(size))
            else { return nil }
            keys[index] = key
        }
        guard let size = reader.integer(UInt8.self), let revision = reader.bytes(Int(size)) else { return nil }
        self.init(
            expiresAt: expiresAt, sequence: sequence, keys: keys, revision: revision, item: Array(reader.rest))
    }
}

/// What a ``KeyValueBackend`` stores of a collection.
struct CollectionEntry {
    var number: UInt32
    /// Of its history; 0: it keeps none.
    var identity: UInt64 = 0
    /// The highest sequence number of a removal that was forgotten; 0: none.
    var forgotten: UInt64 = 0
    var indexes: [Index] = []

    struct Index {
        let number: UInt32
        let name: [UInt8]
    }

    var layout: KeyLayout { KeyLayout(collection: number) }

    var bytes: [UInt8] {
        indexes.reduce(number.bigEndianBytes + identity.bigEndianBytes + forgotten.bigEndianBytes) {
            $0 + $1.number.bigEndianBytes + UInt32(clamping: $1.name.count).bigEndianBytes + $1.name
        }
    }

    init(number: UInt32) {
        self.number = number
    }

    /// - Throws: ``StorageFailure`` with `corrupt`.
    init(bytes: [UInt8]) throws(StorageFailure) {
        var reader = ByteReader(bytes)
        guard let number = reader.integer(UInt32.self), let identity = reader.integer(UInt64.self),
            let forgotten = reader.integer(UInt64.self)
        else { throw Self.corrupt }
        (self.number, self.identity, self.forgotten) = (number, identity, forgotten)
        while !reader.rest.isEmpty {
            guard let number = reader.integer(UInt32.self), let size = reader.integer(UInt32.self),
                let name = reader.bytes(Int(size))
            else { throw Self.corrupt }
            indexes.append(Index(number: number, name: name))
        }
    }

    private static var corrupt: StorageFailure { StorageFailure(.corrupt, "the entry of a collection is damaged") }
}

/// What a ``KeyValueBackend`` stores of itself.
struct StoreState {
    /// No sequence number above this has been stored.
    var sequenceCeiling: UInt64 = 0
    /// No collection and no index has had this number, or a higher one.
    var nextNumber: UInt32 = 1

    var bytes: [UInt8] { sequenceCeiling.bigEndianBytes + nextNumber.bigEndianBytes }

    init() {}

    /// - Throws: ``StorageFailure`` with `corrupt`.
    init(bytes: [UInt8]) throws(StorageFailure) {
        var reader = ByteReader(bytes)
        guard let ceiling = reader.integer(UInt64.self), let number = reader.integer(UInt32.self) else {
            throw StorageFailure(.corrupt, "the entry of the store is damaged")
        }
        (sequenceCeiling, nextNumber) = (ceiling, number)
    }
}

/// Takes bytes apart.
private struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    /// The next bytes; nil where there are not as many.
    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Integer? {
        bytes(Integer.bitWidth / 8).map { Integer(bigEndian: $0) }
    }
}
