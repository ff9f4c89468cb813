import CRUDModel

/// The records found so far that may stand on the page: those that come first, as many as it still takes.
///
/// It holds what records are sorted by and not their items. A record that comes later than all of a full page is turned
/// away by one comparison.
struct FoundRecords {
    private struct Found {
        var position: SortPosition
        var row: Int64
    }

    private let order: SortOrder
    /// The last of the order comes first, as what is settled goes from the end.
    private var found: [Found] = []
    /// How many records the page still takes.
    private var room: Int

    init(_ order: SortOrder, limit: Int) {
        self.order = order
        room = limit
    }

    mutating func insert(_ position: SortPosition, row: Int64) {
        if found.count == room {
            guard let last = found.first, order.compare(position, last.position) < 0 else { return }
            found.removeFirst()
        }
        var (low, high) = (0, found.count)
        while low < high {
            let middle = (low + high) / 2
            if order.compare(position, found[middle].position) < 0 { low = middle + 1 } else { high = middle }
        }
        found.insert(Found(position: position, row: row), at: low)
    }

    /// Takes the first record out, if `isSettled` says that nothing can come before it any more: its row.
    mutating func takeFirst(_ isSettled: (SortPosition) -> Bool) -> Int64? {
        guard let first = found.last, isSettled(first.position) else { return nil }
        found.removeLast()
        room -= 1
        return first.row
    }
}
