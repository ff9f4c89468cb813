import CRUDModel

/// The records found so far that may stand on the page: those that come first, as many as it still takes.
///
/// A heap with the last of them on top, so that a record that comes later than all of a full page is turned away by one
/// comparison. It holds what records are sorted by and not their items.
struct FoundRecords {
    private struct Found {
        var position: SortPosition
        var row: Int64
    }

    private let order: SortOrder
    private var heap: [Found] = []
    /// How many records the page still takes.
    private(set) var room: Int

    init(_ order: SortOrder, limit: Int) {
        self.order = order
        room = limit
    }

    var isEmpty: Bool { heap.isEmpty }

    mutating func insert(_ position: SortPosition, row: Int64) {
        if heap.count < room {
            heap.append(Found(position: position, row: row))
            rise(heap.count - 1)
        } else if let last = heap.first, order.compare(position, last.position) < 0 {
            heap[0] = Found(position: position, row: row)
            sink(0)
        }
    }

    /// Takes those out that `isSettled` says nothing can come before any more, in their order: their rows.
    mutating func take(_ isSettled: (SortPosition) -> Bool) -> [Int64] {
        let settled = heap.filter { isSettled($0.position) }
        if settled.isEmpty { return [] }
        let left = heap.filter { !isSettled($0.position) }
        heap.removeAll(keepingCapacity: true)
        room -= settled.count
        for found in left { insert(found.position, row: found.row) }
        return settled.sorted { order.compare($0.position, $1.position) < 0 }.map(\.row)
    }

    private func isLater(_ left: Int, _ right: Int) -> Bool {
        order.compare(heap[left].position, heap[right].position) > 0
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, isLater(index, (index - 1) / 2) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var last = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && isLater(child, last) {
                last = child
            }
            if last == index { return }
            heap.swapAt(index, last)
            index = last
        }
    }
}
