import CSQLite

/// A connection's prepared statements, those of at most ``capacity`` collections.
///
/// Each collection has one slot, by its number, and shares it with those whose numbers are equal modulo the capacity:
/// the one that is used takes it from the other. A look-up is an index and two comparisons, and up to `capacity`
/// collections never meet.
struct StatementCache: ~Copyable {
    private static let capacity = 256

    private struct Slot {
        var collection: Int
        var statements: [OpaquePointer?]
    }

    private var slots = [Slot?](repeating: nil, count: capacity)

    func statement(_ kind: CollectionStatement, _ collection: SQLiteCollection) -> Statement? {
        guard let slot = slots[collection.number % Self.capacity], slot.collection == collection.number,
            let handle = slot.statements[kind.rawValue]
        else { return nil }
        return Statement(handle: handle)
    }

    mutating func insert(_ statement: Statement, _ kind: CollectionStatement, _ collection: SQLiteCollection) {
        let index = collection.number % Self.capacity
        if slots[index]?.collection != collection.number {
            empty(index)
            slots[index] = Slot(
                collection: collection.number,
                statements: [OpaquePointer?](repeating: nil, count: CollectionStatement.allCases.count))
        }
        slots[index]?.statements[kind.rawValue] = statement.handle
    }

    private mutating func empty(_ index: Int) {
        for statement in slots[index]?.statements ?? [] { sqlite3_finalize(statement) }
        slots[index] = nil
    }
}
