import CRUDPluginKit

/// No bytes.
var emptyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

/// A row as the statements of a collection return it. It is what the host has stored, unless somebody has edited the
/// table by hand: each column is looked at before it goes out, so that the host is never handed a revision or id that
/// violates its rules, or no item at all.
struct StoredRecord {
    private let result: QueryResult
    private let row: Int
    private let collection: PostgreSQLCollection

    init(_ result: QueryResult, _ row: Int, _ collection: PostgreSQLCollection) {
        self.result = result
        self.row = row
        self.collection = collection
    }

    var id: UnsafeRawBufferPointer {
        get throws(StorageFailure) {
            let id = result.bytes(row, 0)
            guard RecordRules.isValidID(id.bytes) else {
                throw corrupt("an id that is not 1 to 512 bytes of UTF-8 without control characters")
            }
            return id
        }
    }

    /// Whether a row by sequence is something that was removed, which has no revision.
    var isRemoval: Bool { result.isNull(row, 1) }

    var revision: UnsafeRawBufferPointer {
        get throws(StorageFailure) {
            let revision = result.bytes(row, 1)
            guard RecordRules.isValidRevision(revision.bytes) else {
                throw corrupt("a revision that is not 1 to 64 characters of printable ASCII")
            }
            return revision
        }
    }

    /// Milliseconds since 1970-01-01 UTC; 0: never.
    var expiresAt: Int64 { result.integer(row, 2) }

    /// 0: written by somebody else.
    var sequence: UInt64 { UInt64(clamping: result.integer(row, 3)) }

    var item: UnsafeRawBufferPointer {
        get throws(StorageFailure) {
            let item = result.bytes(row, 4)
            guard !item.isEmpty else { throw corrupt("an empty item") }
            return item
        }
    }

    private func corrupt(_ violation: String) -> StorageFailure {
        StorageFailure(.corrupt, "table \(collection.tableName) has a row with \(violation)")
    }
}
