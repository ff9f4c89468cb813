import CRUDPluginKit

/// No bytes.
var emptyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

/// A row as the statements of a collection return it. It is what the host has stored, unless SQL has changed it by
/// hand. The host is never handed a revision or an id that violates its rules: a row with such a revision is
/// emitted without an item, which is a corrupt record to the host, and one with such an id, which no client could name,
/// is left out.
struct StoredRecord {
    /// Stands for a revision that is not one.
    static let invalidRevision: StaticString = "invalid"

    private let result: QueryResult
    private let row: Int

    init(_ result: QueryResult, _ row: Int) {
        self.result = result
        self.row = row
    }

    /// nil: it is no id.
    var id: UnsafeRawBufferPointer? {
        let id = result.bytes(row, 0)
        return RecordRules.isValidID(id.bytes) ? id : nil
    }

    /// Whether a row by sequence is something that was removed, which has no revision.
    var isRemoval: Bool { result.isNull(row, 1) }

    /// The revision, and the item, which is empty where it is not wanted or the row is corrupt.
    var content: (revision: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer) {
        let revision = result.bytes(row, 1)
        return RecordRules.isValidRevision(revision.bytes)
            ? (revision, result.bytes(row, 4)) : (Self.known(revision), emptyBytes)
    }

    /// Milliseconds since 1970-01-01 UTC; 0: never.
    var expiresAt: Int64 { result.integer(row, 2) }

    /// 0: written by SQL.
    var sequence: UInt64 { UInt64(clamping: result.integer(row, 3)) }

    /// The revision by which the host knows a row with this one.
    static func known(_ revision: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        if RecordRules.isValidRevision(revision.bytes) { return revision }
        return UnsafeRawBufferPointer(start: invalidRevision.utf8Start, count: invalidRevision.utf8CodeUnitCount)
    }
}
