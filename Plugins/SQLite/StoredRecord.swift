import CRUDModel
import CRUDPluginKit

// A row is what the host has stored, unless somebody has edited the table by hand. These look at each column before it
// goes out, so that the host is never handed a revision or id that breaks its rules, or no item at all.

/// No bytes.
var emptyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

/// Column 0: the revision.
func storedRevision(
    _ statement: Statement, _ collection: SQLiteCollection
) throws(StorageFailure) -> UnsafeRawBufferPointer {
    let revision = statement.bytes(0)
    guard !revision.isEmpty, revision.count <= Naming.maximumRevisionBytes,
        revision.allSatisfy({ 0x20 < $0 && $0 < 0x7F })
    else { throw corrupt(collection, "a revision that is not 1 to \(Naming.maximumRevisionBytes) ASCII characters") }
    return revision
}

/// Column 1: the item.
func storedItem(
    _ statement: Statement, _ collection: SQLiteCollection
) throws(StorageFailure) -> UnsafeRawBufferPointer {
    let item = statement.bytes(1)
    guard !item.isEmpty else { throw corrupt(collection, "an empty item") }
    return item
}

/// Column 2: the id.
func storedID(
    _ statement: Statement, _ collection: SQLiteCollection
) throws(StorageFailure) -> UnsafeRawBufferPointer {
    let id = statement.bytes(2)
    let text = Span<UInt8>(_bytes: id.bytes)
    guard Naming.fault(text, maximum: Naming.maximumIDBytes) == nil, isUTF8(text) else {
        throw corrupt(collection, "an id that is not 1 to \(Naming.maximumIDBytes) bytes of UTF-8 without controls")
    }
    return id
}

private func isUTF8(_ text: Span<UInt8>) -> Bool {
    do {
        _ = try UTF8Span(validating: text)
        return true
    } catch {
        return false
    }
}

private func corrupt(_ collection: SQLiteCollection, _ fault: String) -> StorageFailure {
    StorageFailure(.corrupt, "table \(collection.table) has a row with \(fault)")
}
