import CRUDModel

/// The first records of a sort order among those that are put in, in any order: as many as a page may have, and as their
/// sort values fit a page's memory.
///
/// A heap with the last of them on top (https://en.wikipedia.org/wiki/Binary_heap). What has been left out once, for
/// want of room, bounds what is let in later: a page must not skip a record.
struct FirstPositions {
    private let order: SortOrder
    private let limit: Int
    private let maximumBytes: Int
    private var heap: [SortPosition] = []
    private var bytes = 0
    /// The first position that has been left out.
    private var bound: SortPosition?

    init(_ order: SortOrder, limit: Int, maximumBytes: Int) {
        self.order = order
        self.limit = limit
        self.maximumBytes = maximumBytes
    }

    /// Whether something has been left out.
    var hasMore: Bool { bound != nil }

    /// The positions, first to last.
    var sorted: [SortPosition] { heap.sorted { order.compare($0, $1) < 0 } }

    mutating func insert(_ position: SortPosition) {
        if let bound, order.compare(position, bound) >= 0 { return }
        heap.append(position)
        bytes += position.byteCount
        siftUp()
        while heap.count > limit || (bytes > maximumBytes && heap.count > 1) { removeLast() }
    }

    /// Leaves out the last of them.
    private mutating func removeLast() {
        heap.swapAt(0, heap.count - 1)
        guard let last = heap.popLast() else { return }
        bytes -= last.byteCount
        bound = last
        siftDown()
    }

    private mutating func siftUp() {
        var index = heap.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard order.compare(heap[parent], heap[index]) < 0 else { return }
            heap.swapAt(parent, index)
            index = parent
        }
    }

    private mutating func siftDown() {
        var index = 0
        while true {
            var last = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < heap.count && order.compare(heap[last], heap[child]) < 0 {
                last = child
            }
            if last == index { return }
            heap.swapAt(index, last)
            index = last
        }
    }
}

extension SortPosition {
    /// How much memory it takes, about.
    fileprivate var byteCount: Int {
        var bytes = 128 + id.count + values.count * MemoryLayout<SortValue>.stride
        for case .string(let text) in values { bytes += text.count }
        return bytes
    }
}
