import CRUDPluginKit

/// A record in one allocation: a header, then id, revision, keys and item. So are a removal that is remembered, and
/// what the log has to know of a collection (``Kind``).
///
/// Nothing in it ever changes, so that snapshots share it, but for the fields that the log has in it: where the
/// record stands in the log. The thread that writes has them for itself.
// Readers never read what the writer changes.
struct Record: @unchecked Sendable {
    /// What a record takes beside its bytes, on average: the head of its allocation, its header, and its place in a
    /// node of the tree, which is between half full and full.
    private static let overheadBytes = 96
    /// What a key takes beside its bytes: its header, and the place of its entry in the index.
    private static let keyOverheadBytes = 32

    fileprivate final class Storage: ManagedBuffer<Header, UInt8> {}

    private let storage: ManagedBuffer<Header, UInt8>

    enum Kind: UInt8 {
        case record
        /// Of one that was removed: its id, the number of its removal, and when that was.
        case removal
        /// What a collection is: an item without an id.
        case collection
    }

    fileprivate struct Header: BitwiseCopyable {
        /// The next record of the log, and the one before; nil: there is none, or the record is in no log.
        var next: UnsafeRawPointer?
        var previous: UnsafeRawPointer?
        /// What never changes.
        let fixed: Fixed
        /// The segment that has it.
        var segment: UInt32 = 0
    }

    fileprivate struct Fixed: BitwiseCopyable {
        let expiresAt: Int64
        let sequence: UInt64
        let collection: UInt32
        let keysSize: UInt32
        let itemSize: UInt32
        let idSize: UInt16
        let keyCount: UInt16
        let revisionSize: UInt8
        let kind: UInt8
    }

    /// What stands before the bytes of each key.
    private struct KeyHeader: BitwiseCopyable {
        /// The index, by ``RecordIndex/number``.
        let index: UInt32
        let size: UInt32
    }

    /// The key of a record in an index, by ``RecordIndex/number``.
    typealias Key = (index: UInt32, bytes: UnsafeRawBufferPointer)

    /// - Parameters:
    ///   - kind: what it is.
    ///   - collection: the number of its collection.
    ///   - expiresAt: of a removal, when that was.
    ///   - id: empty where it has none.
    ///   - revision: empty where it has none.
    ///   - item: empty where it has none.
    ///   - sequence: 0 where it has none.
    ///   - keys: those that are not empty.
    init(
        _ kind: Kind = .record, in collection: UInt32, id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer,
        revision: UnsafeRawBufferPointer, expiresAt: Int64, sequence: UInt64, keys: [Key]
    ) {
        let keysSize = keys.reduce(0) { $0 + MemoryLayout<KeyHeader>.size + $1.bytes.count }
        let header = Fixed(
            expiresAt: expiresAt, sequence: sequence, collection: collection, keysSize: UInt32(keysSize),
            itemSize: UInt32(item.count), idSize: UInt16(id.count), keyCount: UInt16(keys.count),
            revisionSize: UInt8(revision.count), kind: kind.rawValue)
        self.init(header) { bytes in
            var rest = bytes
            // The memory has the size of all parts.
            func append(_ part: UnsafeRawBufferPointer) {
                rest.copyMemory(from: part)
                rest = UnsafeMutableRawBufferPointer(rebasing: rest[part.count...])
            }
            append(id)
            append(revision)
            for key in keys {
                withUnsafeBytes(of: KeyHeader(index: key.index, size: UInt32(key.bytes.count)), append)
                append(key.bytes)
            }
            append(item)
        }
    }

    private init(_ header: Fixed, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
        let size = header.bytesSize
        storage = Storage.create(minimumCapacity: size) { _ in Header(fixed: header) }
        storage.withUnsafeMutablePointerToElements { fill(UnsafeMutableRawBufferPointer(start: $0, count: size)) }
    }

    /// The same record with other keys.
    func replacing(keys: [Key]) -> Record {
        withBytes { bytes in
            Record(
                kind, in: collection, id: UnsafeRawBufferPointer(rebasing: bytes[idRange]),
                item: UnsafeRawBufferPointer(rebasing: bytes[itemRange]),
                revision: UnsafeRawBufferPointer(rebasing: bytes[revisionRange]), expiresAt: expiresAt,
                sequence: sequence, keys: keys)
        }
    }

    // MARK: Parts

    private var header: Fixed { storage.withUnsafeMutablePointerToHeader { $0.pointee.fixed } }

    var expiresAt: Int64 { header.expiresAt }
    var sequence: UInt64 { header.sequence }
    var collection: UInt32 { header.collection }
    var kind: Kind { Kind(rawValue: header.kind) ?? .record }

    /// Where the parts lie in the bytes.
    var idRange: Range<Int> { 0..<Int(header.idSize) }
    var revisionRange: Range<Int> {
        let header = header
        return Int(header.idSize)..<Int(header.idSize) + Int(header.revisionSize)
    }
    private var keysRange: Range<Int> {
        let start = revisionRange.upperBound
        return start..<start + Int(header.keysSize)
    }
    var itemRange: Range<Int> {
        let header = header
        return header.bytesSize - Int(header.itemSize)..<header.bytesSize
    }

    /// Where the key of an index lies; nil: the record is unkeyed there.
    func keyRange(of index: UInt32) -> Range<Int>? {
        withBytes { bytes in
            var rest = keysRange
            while !rest.isEmpty {
                // Keys and their headers fill the range.
                let key = bytes.loadUnaligned(fromByteOffset: rest.lowerBound, as: KeyHeader.self)
                let start = rest.lowerBound + MemoryLayout<KeyHeader>.size
                let range = start..<start + Int(key.size)
                if key.index == index { return range }
                rest = range.upperBound..<rest.upperBound
            }
            return nil
        }
    }

    /// Lends id, revision, keys and item.
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        storage.withUnsafeMutablePointers { header, bytes in
            body(UnsafeRawBufferPointer(start: bytes, count: header.pointee.fixed.bytesSize))
        }
    }

    /// Lends the same as a span.
    func withSpan<Result>(_ body: (RawSpan) -> Result) -> Result {
        withBytes { body($0.bytes) }
    }

    /// What the record counts towards `max_bytes`.
    var size: Int {
        let header = header
        return header.bytesSize + Self.overheadBytes
            + Int(header.keyCount) * (Self.keyOverheadBytes - MemoryLayout<KeyHeader>.size)
    }
}

extension Record.Fixed {
    var bytesSize: Int { Int(idSize) + Int(revisionSize) + Int(keysSize) + Int(itemSize) }
}

// MARK: In the log

extension Record {
    /// How a record stands in the log: its header, then its bytes.
    struct LoggedHeader: BitwiseCopyable {
        var expiresAt: Int64
        var sequence: UInt64
        var collection: UInt32
        var keysSize: UInt32
        var itemSize: UInt32
        var idSize: UInt16
        var keyCount: UInt16
        var revisionSize: UInt8
        var kind: UInt8
        var reserved: UInt16 = 0
        var padding: UInt32 = 0

        var bytesSize: Int { Int(idSize) + Int(revisionSize) + Int(keysSize) + Int(itemSize) }
    }

    var loggedHeader: LoggedHeader {
        let header = header
        return LoggedHeader(
            expiresAt: header.expiresAt, sequence: header.sequence, collection: header.collection,
            keysSize: header.keysSize, itemSize: header.itemSize, idSize: header.idSize, keyCount: header.keyCount,
            revisionSize: header.revisionSize, kind: header.kind)
    }

    func hasBytes(of other: Record) -> Bool {
        withBytes { bytes in other.withBytes { bytes.elementsEqual($0) } }
    }

    /// How many bytes it takes in the log.
    var loggedBytes: Int { MemoryLayout<LoggedHeader>.size + header.bytesSize }

    /// A record as it stands in the log.
    ///
    /// - Parameter bytes: as many as the header says.
    init(_ logged: LoggedHeader, _ kind: Kind, bytes: UnsafeRawBufferPointer) {
        self.init(
            Fixed(
                expiresAt: logged.expiresAt, sequence: logged.sequence, collection: logged.collection,
                keysSize: logged.keysSize, itemSize: logged.itemSize, idSize: logged.idSize,
                keyCount: logged.keyCount, revisionSize: logged.revisionSize, kind: kind.rawValue)
        ) { $0.copyMemory(from: bytes) }
    }

    /// Whether the keys and their headers fill the range that is theirs.
    var hasValidKeys: Bool {
        withBytes { bytes in
            var rest = keysRange
            var count = 0
            while !rest.isEmpty {
                guard rest.count >= MemoryLayout<KeyHeader>.size else { return false }
                let key = bytes.loadUnaligned(fromByteOffset: rest.lowerBound, as: KeyHeader.self)
                guard Int(key.size) <= rest.count - MemoryLayout<KeyHeader>.size else { return false }
                rest = rest.dropFirst(MemoryLayout<KeyHeader>.size + Int(key.size))
                count += 1
            }
            return count == Int(header.keyCount)
        }
    }

    // MARK: The order of the log

    /// Of the segment that has it; the thread that writes alone uses it.
    var segment: UInt32 {
        get { storage.withUnsafeMutablePointerToHeader { $0.pointee.segment } }
        nonmutating set { storage.withUnsafeMutablePointerToHeader { $0.pointee.segment = newValue } }
    }

    /// Its neighbours in the log; they are retained by what they are part of. The thread that writes alone uses them.
    var next: Record? {
        get { Self.record(storage.withUnsafeMutablePointerToHeader { $0.pointee.next }) }
        nonmutating set { storage.withUnsafeMutablePointerToHeader { $0.pointee.next = newValue?.address } }
    }
    var previous: Record? {
        get { Self.record(storage.withUnsafeMutablePointerToHeader { $0.pointee.previous }) }
        nonmutating set { storage.withUnsafeMutablePointerToHeader { $0.pointee.previous = newValue?.address } }
    }

    private var address: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(storage).toOpaque()) }

    private static func record(_ address: UnsafeRawPointer?) -> Record? {
        // An address is one of a record that has not been removed from the list, and so is retained.
        address.map { Record(storage: unsafe Unmanaged<Storage>.fromOpaque($0).takeUnretainedValue()) }
    }

    private init(storage: ManagedBuffer<Header, UInt8>) {
        self.storage = storage
    }

    static func === (one: Record, other: Record) -> Bool { one.storage === other.storage }
}
