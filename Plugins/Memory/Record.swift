import Glibc

/// A record in one allocation: id, revision and item, one after the other.
struct Record: Sendable {
    /// What a record takes beside its bytes, on average: the head of its allocation, and its place in a node of the
    /// tree, which is between half full and full.
    static let overheadBytes = 64

    let bytes: [UInt8]
    private let idSize: UInt32
    private let revisionSize: UInt32

    init(id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) {
        bytes = [UInt8](unsafeUninitializedCapacity: id.count + revision.count + item.count) { buffer, size in
            // The capacity is the sum of the three.
            for part in [id, revision, item] { size = buffer[size...].initialize(fromContentsOf: part) }
        }
        idSize = UInt32(id.count)
        revisionSize = UInt32(revision.count)
    }

    /// Where id, revision and item lie in ``bytes``.
    var idRange: Range<Int> { 0..<Int(idSize) }
    var revisionRange: Range<Int> { Int(idSize)..<Int(idSize + revisionSize) }
    var itemRange: Range<Int> { Int(idSize + revisionSize)..<bytes.count }

    /// What the record counts towards `max_bytes`.
    var size: Int { Self.size(id: idRange.count, item: itemRange.count, revision: revisionRange.count) }

    static func size(id: Int, item: Int, revision: Int) -> Int { id + item + revision + overheadBytes }

    func withRevision<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The slice is used before the closure returns.
        unsafe bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[revisionRange])) }
    }

    /// Less than, equal to or greater than 0 as the record's id stands before, at or after `other` in the order of
    /// bytes.
    func compare(_ other: UnsafeRawBufferPointer) -> Int {
        let idSize = Int(idSize)
        let shared = min(idSize, other.count)
        guard shared > 0, let start = other.baseAddress else { return idSize - other.count }
        // Both have at least `shared` bytes.
        let order = unsafe bytes.withUnsafeBytes { memcmp($0.baseAddress!, start, shared) }
        return order != 0 ? Int(order) : idSize - other.count
    }
}
