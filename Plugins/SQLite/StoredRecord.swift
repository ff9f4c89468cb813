import CRUDPluginKit

// A row is what the host has stored, unless somebody has edited the table by hand. These look at each column before it
// goes out, so that the host is never handed a revision or id that violates its rules, or no item at all.

/// No bytes.
var emptyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

extension Statement {
    /// Column 0 of the statements that give records.
    func storedRevision(_ collection: SQLiteCollection) throws(StorageFailure) -> UnsafeRawBufferPointer {
        let revision = bytes(0)
        guard RecordRules.isValidRevision(revision.bytes) else {
            throw corrupt(collection, "a revision that is not 1 to 64 characters of printable ASCII")
        }
        return revision
    }

    /// Column 1.
    func storedItem(_ collection: SQLiteCollection) throws(StorageFailure) -> UnsafeRawBufferPointer {
        let item = bytes(1)
        guard !item.isEmpty else { throw corrupt(collection, "an empty item") }
        return item
    }

    /// Column 2: milliseconds since 1970-01-01 UTC; 0: never.
    var storedExpiry: Int64 { integer(2) }

    /// Column 3; 0: written by somebody else.
    var storedSequence: UInt64 { UInt64(clamping: integer(3)) }

    /// Column 4.
    func storedID(_ collection: SQLiteCollection) throws(StorageFailure) -> UnsafeRawBufferPointer {
        let id = bytes(4)
        guard RecordRules.isValidID(id.bytes) else {
            throw corrupt(collection, "an id that is not 1 to 512 bytes of UTF-8 without control characters")
        }
        return id
    }

    private func corrupt(_ collection: SQLiteCollection, _ violation: String) -> StorageFailure {
        StorageFailure(.corrupt, "table \(collection.tableName) has a row with \(violation)")
    }
}
