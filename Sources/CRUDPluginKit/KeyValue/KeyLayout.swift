// What a ``KeyValueBackend`` stores under which keys. Numbers are stored with their highest byte first, so that the
// order of their bytes is theirs.
//
// | key | value |
// | --- | --- |
// | 0 | upper bound of sequence numbers in use, next number of a collection or index |
// | 1, name, 0, format | a collection: its number, its history, its indexes (``CollectionEntry``) |
// | 2, number, 0, id | a record (``StoredRecord``) |
// | 2, number, 1, index, key, 0, id | nothing: the record has that key; an empty one: it has none |
// | 2, number, 2, sequence number | the id of the record; 0 and time of removal, then the id of one that was removed |
// | 2, number, 2, 0, id | the id of a record without a sequence number |
// | 2, number, 3, sequence number | nothing: of a removal |
// | 2, number, 4, expiry, id | nothing: the record expires then |
//
// Within a key of an index a byte 0 is followed by 255. No id begins with either, so that keys and then ids are in
// order. Numbers are never used twice: what a crash leaves behind of an index that was being made or dropped belongs to
// none.

/// The keys of a collection.
struct KeyLayout {
    private let prefix: [UInt8]

    static let state = StoredKey([0])
    /// What tells the store from others.
    static let identity = StoredKey([0, 1])
    static let collections = StoredKey([1])..<StoredKey([2])

    init(collection: UInt32) {
        prefix = [2] + collection.bigEndianBytes
    }

    static func collection(_ name: some Sequence<UInt8>, _ format: some Sequence<UInt8>) -> StoredKey {
        StoredKey([1] + Array(name) + [0] + Array(format))
    }

    /// The collections of a name, in all formats.
    static func collections(named name: some Sequence<UInt8>) -> Range<StoredKey> {
        let name = [1] + Array(name)
        return StoredKey(name + [0])..<StoredKey(name + [1])
    }

    /// The name in a key of ``collections``.
    static func name(in key: StoredKey) -> ArraySlice<UInt8> { key.bytes.dropFirst().prefix { $0 != 0 } }

    /// Everything of the collection.
    var everything: Range<StoredKey> { Self.range(prefix) }

    // MARK: Records

    private var records: [UInt8] { prefix + [0] }
    func record(_ id: some Sequence<UInt8>) -> StoredKey { StoredKey(records + Array(id)) }
    func records(_ ids: IDRange) -> Range<StoredKey> { Self.range(records, ids) }
    func id(inRecord key: StoredKey) -> ArraySlice<UInt8> { key.bytes.dropFirst(records.count) }

    // MARK: Indexes

    private func entries(_ index: UInt32) -> [UInt8] { prefix + [1] + index.bigEndianBytes }

    func entry(_ index: UInt32, key: some Sequence<UInt8>, id: some Sequence<UInt8>) -> StoredKey {
        StoredKey(start(index, key: key) + Array(id))
    }

    /// What the entries of a key begin with.
    private func start(_ index: UInt32, key: some Sequence<UInt8>) -> [UInt8] {
        entries(index) + key.flatMap { $0 == 0 ? [0, 255] : [$0] } + [0]
    }

    func index(_ index: UInt32) -> Range<StoredKey> { Self.range(entries(index)) }

    func unkeyed(_ index: UInt32, _ ids: IDRange) -> Range<StoredKey> {
        Self.range(entries(index) + [0], ids, end: entries(index) + [0, 255])
    }

    /// The entries with keys in a range.
    ///
    /// - Parameter upper: empty: no bound.
    func keyed(
        _ index: UInt32, lower: UnsafeRawBufferPointer, upper: UnsafeRawBufferPointer
    ) -> Range<StoredKey> {
        Self.range(
            from: lower.isEmpty ? entries(index) + [0, 255] : start(index, key: lower),
            to: upper.isEmpty ? Self.end(of: entries(index)) : start(index, key: upper))
    }

    /// The id in an entry of an index, which follows the first 0 without a 255.
    func id(inEntry entry: StoredKey) -> ArraySlice<UInt8> {
        var rest = entry.bytes.dropFirst(entries(0).count)
        while let byte = rest.popFirst() {
            guard byte == 0 else { continue }
            guard rest.first == 255 else { break }
            rest.removeFirst()
        }
        return rest
    }

    // MARK: Sequence numbers

    private var sequences: [UInt8] { prefix + [2] }
    private var unnumbered: [UInt8] { sequences + UInt64(0).bigEndianBytes }

    func sequence(_ record: StoredRecord, _ id: [UInt8]) -> StoredKey {
        record.sequence == 0 ? StoredKey(unnumbered + id) : sequence(record.sequence)
    }

    func sequence(_ sequence: UInt64) -> StoredKey { StoredKey(sequences + sequence.bigEndianBytes) }

    /// - Parameter upper: nil: no bound.
    func sequences(lower: UInt64, upper: UInt64?) -> Range<StoredKey> {
        Self.range(
            from: sequences + max(1, lower).bigEndianBytes,
            to: upper.map { sequences + $0.bigEndianBytes } ?? Self.end(of: sequences))
    }

    func unsequenced(_ ids: IDRange) -> Range<StoredKey> { Self.range(unnumbered, ids) }
    func removal(_ sequence: UInt64) -> StoredKey { StoredKey(prefix + [3] + sequence.bigEndianBytes) }
    var removals: Range<StoredKey> { Self.range(prefix + [3]) }
    /// The order of sequence numbers, and that of removals.
    var history: Range<StoredKey> { Self.range(from: sequences, to: prefix + [4]) }

    // MARK: Expiry

    private var expiries: [UInt8] { prefix + [4] }

    func expiry(_ expiresAt: Int64, _ id: some Sequence<UInt8>) -> StoredKey {
        StoredKey(expiries + UInt64(clamping: expiresAt).bigEndianBytes + Array(id))
    }

    /// The records that expire.
    var expiring: Range<StoredKey> { Self.range(expiries) }

    func expiryAndID(in key: StoredKey) -> (expiresAt: Int64, id: ArraySlice<UInt8>) {
        let rest = key.bytes.dropFirst(expiries.count)
        return (Int64(clamping: UInt64(bigEndian: rest.prefix(8))), rest.dropFirst(8))
    }

    // MARK: Ranges

    /// All keys that begin with a prefix.
    private static func range(_ prefix: [UInt8]) -> Range<StoredKey> { range(from: prefix, to: end(of: prefix)) }

    private static func range(_ prefix: [UInt8], _ ids: IDRange, end: [UInt8]? = nil) -> Range<StoredKey> {
        range(from: prefix + ids.lower, to: ids.upper.map { prefix + $0 } ?? end ?? self.end(of: prefix))
    }

    private static func range(from lower: [UInt8], to upper: [UInt8]) -> Range<StoredKey> {
        // The host may ask for a range whose bounds leave nothing between them.
        let lower = StoredKey(lower)
        return lower..<max(lower, StoredKey(upper))
    }

    /// The least key behind all that begin with a prefix, none of which consists of 255 alone.
    private static func end(of prefix: [UInt8]) -> [UInt8] {
        var end = prefix
        while end.last == 255 { end.removeLast() }
        end[end.count - 1] += 1
        return end
    }
}

extension Range<StoredKey> {
    /// The part that a scan has yet to visit after a key.
    func resumed(after key: StoredKey, isReversed: Bool) -> Range<StoredKey> {
        if isReversed { return lowerBound..<Swift.max(lowerBound, Swift.min(key, upperBound)) }
        return Swift.min(Swift.max(key.next, lowerBound), upperBound)..<upperBound
    }
}

extension FixedWidthInteger {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

    /// The number whose bytes these are, the highest first.
    init(bigEndian bytes: some Sequence<UInt8>) {
        self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }
}
