import CRUDModel

/// The first records of an order among those that are inserted in any order: as many as a page may have, and as fit
/// into it.
///
/// Records that come in their order are kept as a sorted list. With the first one out of order the list becomes a heap
/// with the last record on top (https://en.wikipedia.org/wiki/Binary_heap). A record that was left out for want of room
/// bounds what is let in later: a page must not skip a record.
struct FirstRecords {
    struct Entry {
        var position: SortPosition
        /// What is kept of the record.
        var content: [UInt8]
        /// Of two records with different ranks the one with the lesser rank comes first.
        fileprivate var rank: UInt64 = 0
        /// How long a cursor behind it is at the most.
        fileprivate let cursorBytes: Int

        init(position: SortPosition, content: [UInt8]) {
            self.position = position
            self.content = content
            cursorBytes = position.maximumCursorBytes
        }
    }

    private let order: SortOrder
    private let limit: Int
    private let maximumBytes: Int
    private var entries: [Entry] = []
    private var isHeap = false
    private(set) var contentBytes = 0
    private var valueBytes = 0
    /// Bytes of the page that are not of its records.
    private var reservedBytes = 0
    /// The first record that has been left out for want of room.
    private var bound: SortPosition?
    /// Whether any record has been left out.
    private(set) var hasLeftOut = false

    /// - Parameters:
    ///   - limit: the most records.
    ///   - maximumBytes: the most bytes of all contents, each with a separator, and of a cursor behind them.
    init(_ order: SortOrder, limit: Int, maximumBytes: Int) {
        self.order = order
        self.limit = limit
        self.maximumBytes = maximumBytes
        entries.reserveCapacity(min(limit, 64))
    }

    var count: Int { entries.count }

    /// Only records before this position have a place; nil: all have.
    var threshold: SortPosition? { entries.count == limit ? last?.position : bound }

    /// The records, first to last, each once.
    var sorted: [Entry] {
        guard isHeap else { return entries }
        var sorted: [Entry] = []
        for entry in entries.sorted(by: { order.compare($0.position, $1.position) < 0 })
        where sorted.last?.position != entry.position {
            sorted.append(entry)
        }
        return sorted
    }

    /// Takes notice of a record that has no place.
    mutating func leaveOut() { hasLeftOut = true }

    /// Makes the page smaller by so many bytes.
    mutating func reserve(bytes: Int) {
        reservedBytes += bytes
        shrink()
    }

    /// Removes the records behind a position.
    mutating func removeAll(behind position: SortPosition) {
        entries = sorted.filter { order.compare($0.position, position) <= 0 }
        isHeap = false
        contentBytes = entries.reduce(0) { $0 + $1.content.count + 1 }
    }

    /// Inserts a record, unless it comes behind those that fill the page.
    mutating func insert(_ entry: Entry) {
        var entry = entry
        entry.rank = rank(entry.position)
        if let threshold, order.compare(entry.position, threshold) >= 0 { return leaveOut() }
        if !isHeap, !entries.isEmpty {
            let order = order.compare(entry.position, entries[entries.count - 1].position)
            if order == 0 { return }
            if order < 0 {
                // A list in descending order is a heap.
                entries.reverse()
                isHeap = true
            }
        }
        contentBytes += entry.content.count + 1
        valueBytes += entry.position.byteCount
        entries.append(entry)
        if isHeap { siftUp() }
        shrink()
    }

    // MARK: Room

    /// The last of the records.
    var last: Entry? { isHeap ? entries.first : entries.last }

    private mutating func shrink() {
        while entries.count > limit || entries.count > 1 && isOverfull { removeLast() }
    }

    /// Whether the contents exceed the page, which between two calls only a single record can.
    var isOverfull: Bool {
        guard !entries.isEmpty else { return false }
        let cursorBytes = entries[isHeap ? 0 : entries.count - 1].cursorBytes
        return contentBytes + reservedBytes + cursorBytes > maximumBytes || valueBytes > maximumBytes
    }

    private mutating func removeLast() {
        if isHeap { entries.swapAt(0, entries.count - 1) }
        guard let last = entries.popLast() else { return }
        contentBytes -= last.content.count + 1
        valueBytes -= last.position.byteCount
        bound = last.position
        hasLeftOut = true
        if isHeap { siftDown() }
    }

    // MARK: The heap

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let ranks = (entries[left].rank, entries[right].rank)
        // Positions need to be compared only where the ranks are equal, which saves most of the time.
        return ranks.0 == ranks.1
            ? order.compare(entries[left].position, entries[right].position) < 0 : ranks.0 < ranks.1
    }

    private func rank(_ position: SortPosition) -> UInt64 {
        guard let value = position.values.first else { return IndexKey.prefix(position.id[...]) }
        let prefix = IndexKey.prefix(value)
        return order.keys[0].isDescending ? ~prefix : prefix
    }

    private mutating func siftUp() {
        var index = entries.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard isBefore(parent, index) else { return }
            entries.swapAt(parent, index)
            index = parent
        }
    }

    private mutating func siftDown() {
        var index = 0
        while true {
            var last = index
            for child in [2 * index + 1, 2 * index + 2] where child < entries.count && isBefore(last, child) {
                last = child
            }
            if last == index { return }
            entries.swapAt(index, last)
            index = last
        }
    }
}

extension SortPosition {
    /// How much memory its values take beside the record's content, about.
    fileprivate var byteCount: Int {
        var bytes = values.count * MemoryLayout<SortValue>.stride
        for case .string(let text) in values { bytes += text.count }
        return bytes
    }
}
