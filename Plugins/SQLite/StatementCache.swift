import CSQLite

/// A connection's prepared statements, those of at most ``capacity`` scopes.
///
/// Each scope has one slot, by its number, and shares it with those whose numbers are equal modulo the capacity: the
/// one that is used replaces the other. A lookup is an index and two comparisons, and up to `capacity` scopes do not
/// replace each other.
struct StatementCache: ~Copyable {
    private static let capacity = 512

    private struct Slot {
        var scope: Int
        var statements: [OpaquePointer?]
    }

    private var slots = [Slot?](repeating: nil, count: capacity)

    func statement(_ kind: CollectionStatement, _ scope: StatementScope) -> Statement? {
        guard let slot = slots[scope.number % Self.capacity], slot.scope == scope.number,
            let handle = slot.statements[kind.index]
        else { return nil }
        return Statement(handle: handle)
    }

    mutating func insert(_ statement: Statement, _ kind: CollectionStatement, _ scope: StatementScope) {
        let index = scope.number % Self.capacity
        if slots[index]?.scope != scope.number {
            empty(index)
            slots[index] = Slot(
                scope: scope.number, statements: [OpaquePointer?](repeating: nil, count: CollectionStatement.count))
        }
        slots[index]?.statements[kind.index] = statement.handle
    }

    private mutating func empty(_ index: Int) {
        for statement in slots[index]?.statements ?? [] { sqlite3_finalize(statement) }
        slots[index] = nil
    }
}
