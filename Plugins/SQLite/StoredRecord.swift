import CRUDPluginKit
import CSQLite

// A row is what the host has stored, unless somebody has edited the table by hand. The host is never handed a revision
// or an id that violates its rules: a row with such a revision is emitted without an item, which is a corrupt record to
// the host, and one with such an id, which no client could name, is left out.

/// No bytes.
var emptyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

extension Statement {
    /// Stands for a revision that is not one.
    private static let invalidRevision: StaticString = "invalid"

    /// Columns 0 and 1 of the statements that give records.
    ///
    /// - Returns: the revision, whether it is the one that is stored, and the item, empty where the row is corrupt.
    var storedContent: (revision: UnsafeRawBufferPointer, isStored: Bool, item: UnsafeRawBufferPointer) {
        let revision = bytes(0)
        if RecordRules.isValidRevision(revision.bytes) { return (revision, true, bytes(1)) }
        let invalid = Self.invalidRevision
        return (UnsafeRawBufferPointer(start: invalid.utf8Start, count: invalid.utf8CodeUnitCount), false, emptyBytes)
    }

    /// Column 2: milliseconds since 1970-01-01 UTC; 0: never.
    var storedExpiry: Int64 { expiry(2) }

    /// A time of expiry, in milliseconds since 1970-01-01 UTC; 0: never. So it is where somebody has stored anything
    /// but an integer.
    func expiry(_ column: Int32) -> Int64 {
        sqlite3_column_type(handle, column) == SQLITE_INTEGER ? integer(column) : 0
    }

    /// Column 3; 0: written by somebody else.
    var storedSequence: UInt64 { UInt64(clamping: integer(3)) }

    /// Whether a row by sequence is something that was removed, which has no rowid in column 5.
    var isRemoval: Bool { sqlite3_column_type(handle, 5) == SQLITE_NULL }

    /// Column 5, as an unsigned number in the same order. The least rowid, which SQLite gives to no row, is 0.
    var storedPosition: UInt64 { UInt64(bitPattern: integer(5)) ^ Self.signBit }

    /// The rowid at a position.
    static func rowID(_ position: UInt64) -> Int64 { Int64(bitPattern: position ^ signBit) }

    private static let signBit: UInt64 = 1 << 63

    /// Column 4; nil: it is no id.
    var storedID: UnsafeRawBufferPointer? {
        let id = bytes(4)
        return RecordRules.isValidID(id.bytes) ? id : nil
    }
}
