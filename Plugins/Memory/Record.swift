/// A record in one allocation: a header, then id, revision, keys and item.
struct Record: Sendable {
    /// What a record takes beside its bytes, on average: the head of its allocation, its header, and its place in a
    /// node of the tree, which is between half full and full.
    private static let overheadBytes = 96
    /// What a key takes beside its bytes: its header, and the place of its entry in the index.
    private static let keyOverheadBytes = 32

    let bytes: [UInt8]

    private struct Header: BitwiseCopyable {
        let expiresAt: Int64
        let sequence: UInt64
        let idSize: UInt32
        let revisionSize: UInt32
        let keysSize: UInt32
        let keyCount: UInt32
    }

    /// What stands before the bytes of each key.
    private struct KeyHeader: BitwiseCopyable {
        /// The index, by ``RecordIndex/number``.
        let index: UInt32
        let size: UInt32
    }

    /// The key of a record in an index, by ``RecordIndex/number``.
    typealias Key = (index: UInt32, bytes: UnsafeRawBufferPointer)

    init(
        id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer, expiresAt: Int64,
        sequence: UInt64, keys: [Key]
    ) {
        let keysSize = keys.reduce(0) { $0 + MemoryLayout<KeyHeader>.size + $1.bytes.count }
        let header = Header(
            expiresAt: expiresAt, sequence: sequence, idSize: UInt32(id.count), revisionSize: UInt32(revision.count),
            keysSize: UInt32(keysSize), keyCount: UInt32(keys.count))
        let size = MemoryLayout<Header>.size + id.count + revision.count + keysSize + item.count
        bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            // The capacity is the sum of all parts.
            func append(_ part: UnsafeRawBufferPointer) {
                count = buffer[count...].initialize(fromContentsOf: part)
            }
            withUnsafeBytes(of: header, append)
            append(id)
            append(revision)
            for key in keys {
                withUnsafeBytes(of: KeyHeader(index: key.index, size: UInt32(key.bytes.count)), append)
                append(key.bytes)
            }
            append(item)
        }
    }

    /// The same record with other keys.
    func replacing(keys: [Key]) -> Record {
        withBytes { bytes in
            Record(
                id: UnsafeRawBufferPointer(rebasing: bytes[idRange]),
                item: UnsafeRawBufferPointer(rebasing: bytes[itemRange]),
                revision: UnsafeRawBufferPointer(rebasing: bytes[revisionRange]), expiresAt: expiresAt,
                sequence: sequence, keys: keys)
        }
    }

    // MARK: Parts

    private var header: Header {
        // Every record begins with one, aligned as an array's first element is.
        unsafe bytes.span.bytes.unsafeLoad(as: Header.self)
    }

    var expiresAt: Int64 { header.expiresAt }
    var sequence: UInt64 { header.sequence }

    /// Where the parts lie in ``bytes``.
    var idRange: Range<Int> { range(from: MemoryLayout<Header>.size, size: header.idSize) }
    var revisionRange: Range<Int> { range(from: idRange.upperBound, size: header.revisionSize) }
    private var keysRange: Range<Int> { range(from: revisionRange.upperBound, size: header.keysSize) }
    var itemRange: Range<Int> { keysRange.upperBound..<bytes.count }

    private func range(from start: Int, size: UInt32) -> Range<Int> { start..<(start + Int(size)) }

    /// Where the key of an index lies; nil: the record is unkeyed there.
    func keyRange(of index: UInt32) -> Range<Int>? {
        var rest = keysRange
        while !rest.isEmpty {
            // Keys and their headers fill the range.
            let key = unsafe bytes.span.bytes.unsafeLoadUnaligned(fromByteOffset: rest.lowerBound, as: KeyHeader.self)
            let range = range(from: rest.lowerBound + MemoryLayout<KeyHeader>.size, size: key.size)
            if key.index == index { return range }
            rest = range.upperBound..<rest.upperBound
        }
        return nil
    }

    /// Lends the whole record.
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The bytes stay in place until the closure returns.
        unsafe bytes.withUnsafeBytes(body)
    }

    /// What the record counts towards `max_bytes`.
    var size: Int {
        bytes.count - MemoryLayout<Header>.size + Self.overheadBytes
            + Int(header.keyCount) * (Self.keyOverheadBytes - MemoryLayout<KeyHeader>.size)
    }
}
