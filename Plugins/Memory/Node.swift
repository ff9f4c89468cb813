/// A node of a B-tree: records in order and, unless it is a leaf, a child before, between and after them.
///
/// Every node but the root has between half of ``capacity`` and all of it. One that grows beyond is split around its
/// middle record, which goes up to the parent; one that shrinks below is joined with a neighbour and the record between
/// them, and split again if that is too much.
struct Node: Sendable {
    private static let capacity = 32

    private(set) var records: [Record]
    private(set) var children: [Node]
    /// How many records there are here and below.
    private(set) var count: Int

    init(records: [Record] = [], children: [Node] = []) {
        self.records = records
        self.children = children
        count = children.reduce(records.count) { $0 + $1.count }
    }

    // MARK: Looking

    func record(_ id: UnsafeRawBufferPointer) -> Record? {
        let (index, isHere) = position(id)
        if isHere { return records[index] }
        return children.isEmpty ? nil : children[index].record(id)
    }

    /// How many records stand before `id`.
    func rank(_ id: UnsafeRawBufferPointer) -> Int {
        let (index, isHere) = position(id)
        if children.isEmpty { return index }
        let before = children[..<index].reduce(index) { $0 + $1.count }
        return before + (isHere ? children[index].count : children[index].rank(id))
    }

    /// Hands over the records from `id` on, until `body` answers false, and says whether it never did.
    func walk(from id: UnsafeRawBufferPointer, _ body: (Record) -> Bool) -> Bool {
        let (start, isHere) = position(id)
        if !isHere, !children.isEmpty, !children[start].walk(from: id, body) { return false }
        for index in start..<records.count {
            guard body(records[index]) else { return false }
            if !children.isEmpty, !children[index + 1].walk(body) { return false }
        }
        return true
    }

    private func walk(_ body: (Record) -> Bool) -> Bool {
        for index in records.indices {
            if !children.isEmpty, !children[index].walk(body) { return false }
            guard body(records[index]) else { return false }
        }
        return children.last?.walk(body) ?? true
    }

    /// The index of the first record that does not stand before `id`, and whether that is the one with this id.
    private func position(_ id: UnsafeRawBufferPointer) -> (index: Int, isHere: Bool) {
        var (lower, upper) = (0, records.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            let order = records[middle].compare(id)
            if order == 0 { return (middle, true) }
            if order < 0 { lower = middle + 1 } else { upper = middle }
        }
        return (lower, false)
    }

    // MARK: Inserting

    var isOverfull: Bool { records.count > Self.capacity }

    /// The node without its middle record as two nodes, and that record.
    var halves: (left: Node, middle: Record, right: Node) {
        let middle = records.count / 2
        return (
            Node(records: Array(records[..<middle]), children: Array(children.prefix(middle + 1))),
            records[middle],
            Node(records: Array(records[(middle + 1)...]), children: Array(children.dropFirst(middle + 1)))
        )
    }

    /// Stores a record and answers the one with the same id that it replaces. The node may be overfull then.
    mutating func insert(_ record: Record, _ id: UnsafeRawBufferPointer) -> Record? {
        let (index, isHere) = position(id)
        if isHere {
            let replaced = records[index]
            records[index] = record
            return replaced
        }
        var replaced: Record?
        if children.isEmpty {
            records.insert(record, at: index)
        } else {
            replaced = children[index].insert(record, id)
            if children[index].isOverfull { split(index) }
        }
        if replaced == nil { count += 1 }
        return replaced
    }

    private mutating func split(_ index: Int) {
        let (left, middle, right) = children[index].halves
        children[index] = left
        children.insert(right, at: index + 1)
        records.insert(middle, at: index)
    }

    // MARK: Removing

    /// Removes a record and answers it. The node may have too few then.
    mutating func remove(_ id: UnsafeRawBufferPointer) -> Record? {
        let (index, isHere) = position(id)
        let removed: Record?
        if children.isEmpty {
            removed = isHere ? records.remove(at: index) : nil
        } else if isHere {
            removed = records[index]
            records[index] = children[index].removeLast()
            refill(index)
        } else {
            removed = children[index].remove(id)
            refill(index)
        }
        if removed != nil { count -= 1 }
        return removed
    }

    /// Removes the last record of a node that is not empty.
    private mutating func removeLast() -> Record {
        count -= 1
        guard !children.isEmpty else { return records.removeLast() }
        let last = children.count - 1
        let removed = children[last].removeLast()
        refill(last)
        return removed
    }

    /// Joins a child that has too few records with a neighbour.
    private mutating func refill(_ index: Int) {
        guard children[index].records.count < Self.capacity / 2 else { return }
        let left = max(index - 1, 0)
        let right = children.remove(at: left + 1)
        let between = records.remove(at: left)
        children[left] = Node(
            records: children[left].records + [between] + right.records,
            children: children[left].children + right.children)
        if children[left].isOverfull { split(left) }
    }
}
