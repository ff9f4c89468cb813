/// The way from the root of a B-tree to an element: which child of each node, and then which element.
struct NodePath: BitwiseCopyable, Sendable {
    /// Six bits for each, the first ones the lowest: more levels than ten would take a trillion elements.
    private var indices: UInt64 = 0
    private(set) var count = 0

    subscript(level: Int) -> Int { Int(truncatingIfNeeded: indices >> (6 * level)) & 63 }

    mutating func append(_ index: Int) {
        indices |= UInt64(index) << (6 * count)
        count += 1
    }
}

/// A node of a B-tree: elements in order and, unless it is a leaf, a child before, between and behind them.
///
/// Every node but the root has between half of ``capacity`` and all of it. One that grows beyond is split around its
/// middle element, which moves up to the parent; one that shrinks below is joined with a neighbour and the element
/// between them, and split again if that is too much.
struct Node<Element: TreeElement>: Sendable {
    private static var capacity: Int { 32 }

    private(set) var elements: [Entry]
    private(set) var children: [Node]
    /// How many elements there are here and below.
    private(set) var count = 0
    /// The least ``TreeElement/expiry`` of them.
    private var firstExpiry = Int64.max

    /// An element, with the beginning of its position.
    struct Entry: Sendable {
        let prefix: PositionPrefix
        let element: Element

        init(_ element: Element) { self.init(element, prefix: element.withPosition { $0.prefix }) }

        init(_ element: Element, prefix: PositionPrefix) {
            self.prefix = prefix
            self.element = element
        }
    }

    init(elements: [Entry] = [], children: [Node] = []) {
        self.elements = elements
        self.children = children
        count = children.reduce(elements.count) { $0 + $1.count }
        firstExpiry = leastExpiry
    }

    /// A tree of elements in order, with room in each node.
    init(sorted elements: ArraySlice<Element>) {
        var height = 0
        // How many elements a child has at most.
        var below = 0
        while elements.count > (below + 1) * Self.filling - 1 {
            below = (below + 1) * Self.filling - 1
            height += 1
        }
        self.init(sorted: elements, height: height, below: below)
    }

    /// How many children a node has at first, at most.
    private static var filling: Int { capacity / 4 * 3 + 1 }

    private init(sorted elements: ArraySlice<Element>, height: Int, below: Int) {
        guard height > 0 else {
            self.init(elements: elements.map { Entry($0) })
            return
        }
        let count = (elements.count + below + 1) / (below + 1)
        var rest = elements
        var separators: [Entry] = []
        var children: [Node] = []
        for number in 0..<count {
            // Without the elements between the children that are left.
            let share = (rest.count - (count - number - 1)) / (count - number)
            children.append(
                Node(sorted: rest.prefix(share), height: height - 1, below: (below + 1) / Self.filling - 1))
            rest = rest.dropFirst(share)
            if let separator = rest.popFirst() { separators.append(Entry(separator)) }
        }
        self.init(elements: separators, children: children)
    }

    private var leastExpiry: Int64 {
        children.reduce(elements.reduce(.max) { min($0, $1.element.expiry) }) { min($0, $1.firstExpiry) }
    }

    // MARK: Reading

    /// - Parameter path: gets the way from here.
    func element(at position: Element.Position, _ path: inout NodePath) -> Element? {
        let (index, isHere) = find(position)
        path.append(index)
        if isHere { return elements[index].element }
        if children.isEmpty { return nil }
        // The child stays in place until the closure returns; it is not retained.
        return unsafe children.withUnsafeBufferPointer { unsafe $0[index].element(at: position, &path) }
    }

    /// Visits the elements of a range until `body` returns false, and returns whether it never did.
    func visit(_ range: TreeRange<Element.Position>, isReversed: Bool, _ body: (Element) -> Bool) -> Bool {
        let (start, end) = bounds(of: range)
        // The children from `start` to `end` reach into the range, and the elements between them lie in it.
        var index = isReversed ? end : start
        while start <= index, index <= end {
            if isReversed, index < end, !body(elements[index].element) { return false }
            if !children.isEmpty {
                let part = part(of: range, isFirst: index == start, isLast: index == end)
                guard children[index].visit(part, isReversed: isReversed, body) else { return false }
            }
            if !isReversed, index < end, !body(elements[index].element) { return false }
            index += isReversed ? -1 : 1
        }
        return true
    }

    /// How many elements of a range have not expired at `now`.
    func count(_ range: TreeRange<Element.Position>, at now: Int64) -> Int {
        let isExact = firstExpiry > now
        if isExact, range.lower == nil, range.upper == nil { return count }
        let (start, end) = bounds(of: range)
        guard start <= end else { return 0 }
        var sum = isExact ? end - start : elements[start..<end].count { $0.element.expiry > now }
        if children.isEmpty { return sum }
        for index in start...end {
            sum += children[index].count(part(of: range, isFirst: index == start, isLast: index == end), at: now)
        }
        return sum
    }

    /// What a range is to a child that is the first, or the last, to reach into it.
    private func part(
        of range: TreeRange<Element.Position>, isFirst: Bool, isLast: Bool
    ) -> TreeRange<Element.Position> {
        TreeRange(lower: isFirst ? range.lower : nil, upper: isLast ? range.upper : nil)
    }

    /// Which of the elements lie in a range; `start` may be greater than `end`.
    private func bounds(of range: TreeRange<Element.Position>) -> (start: Int, end: Int) {
        (range.lower.map(index) ?? 0, range.upper.map(index) ?? elements.count)
    }

    /// The index of the first element behind a cut.
    private func index(of cut: Cut<Element.Position>) -> Int {
        let (index, isHere) = find(cut.position)
        return isHere && cut.isBehind ? index + 1 : index
    }

    /// The index of the first element that does not lie before a position, and whether it lies at it.
    private func find(_ position: Element.Position) -> (index: Int, isHere: Bool) {
        var (lower, upper) = (0, elements.count)
        let prefix = position.prefix
        while lower < upper {
            let middle = (lower + upper) / 2
            var order = elements[middle].prefix.compare(to: prefix)
            if order == 0 { order = elements[middle].element.withPosition { $0.compare(to: position) } }
            if order == 0 { return (middle, true) }
            if order < 0 { lower = middle + 1 } else { upper = middle }
        }
        return (lower, false)
    }

    // MARK: Inserting

    /// Stores an element in the place of the one at the same position, and returns that.
    ///
    /// - Parameters:
    ///   - path: leads to the place from the root.
    ///   - level: how many steps from there this node is.
    @discardableResult
    mutating func replace(at path: NodePath, _ level: Int = 0, by element: Element) -> Element {
        let index = path[level]
        let replaced: Element
        if level == path.count - 1 {
            replaced = elements[index].element
            elements[index] = Entry(element, prefix: elements[index].prefix)
        } else {
            replaced = children[index].replace(at: path, level + 1, by: element)
        }
        update(removed: replaced, inserted: element)
        return replaced
    }

    var isOverfull: Bool { elements.count > Self.capacity }

    /// The node without its middle element as two nodes, and that element.
    var halves: (left: Node, middle: Entry, right: Node) {
        let middle = elements.count / 2
        return (
            Node(elements: Array(elements[..<middle]), children: Array(children.prefix(middle + 1))),
            elements[middle],
            Node(elements: Array(elements[(middle + 1)...]), children: Array(children.dropFirst(middle + 1)))
        )
    }

    /// Stores an element and returns the one at the same position that it replaces. The node may be overfull then.
    mutating func insert(_ element: Element, at position: Element.Position) -> Element? {
        let (index, isHere) = find(position)
        var replaced: Element?
        if isHere {
            replaced = elements[index].element
            elements[index] = Entry(element)
        } else if children.isEmpty {
            elements.insert(Entry(element), at: index)
        } else {
            replaced = children[index].insert(element, at: position)
            if children[index].isOverfull { split(index) }
        }
        update(removed: replaced, inserted: element)
        return replaced
    }

    private mutating func split(_ index: Int) {
        let (left, middle, right) = children[index].halves
        children[index] = left
        children.insert(right, at: index + 1)
        elements.insert(middle, at: index)
    }

    /// Brings the sums up to date with a change here or below.
    private mutating func update(removed: Element?, inserted: Element?) {
        if removed != nil { count -= 1 }
        if inserted != nil { count += 1 }
        let isFirst = removed.map { $0.expiry != .max && $0.expiry == firstExpiry } ?? false
        firstExpiry = isFirst ? leastExpiry : min(firstExpiry, inserted?.expiry ?? .max)
    }

    // MARK: Removing

    /// Removes the element at a position and returns it. The node may have too few then.
    mutating func remove(at position: Element.Position) -> Element? {
        let (index, isHere) = find(position)
        let removed: Element?
        if children.isEmpty {
            removed = isHere ? elements.remove(at: index).element : nil
        } else if isHere {
            removed = elements[index].element
            elements[index] = children[index].removeLast()
            refill(index)
        } else {
            removed = children[index].remove(at: position)
            refill(index)
        }
        update(removed: removed, inserted: nil)
        return removed
    }

    /// Removes the last element of a node that is not empty.
    private mutating func removeLast() -> Entry {
        let removed: Entry
        if children.isEmpty {
            removed = elements.removeLast()
        } else {
            let last = children.count - 1
            removed = children[last].removeLast()
            refill(last)
        }
        update(removed: removed.element, inserted: nil)
        return removed
    }

    /// Joins a child that has too few elements with a neighbour.
    private mutating func refill(_ index: Int) {
        guard children[index].elements.count < Self.capacity / 2 else { return }
        let left = max(index - 1, 0)
        let right = children.remove(at: left + 1)
        let between = elements.remove(at: left)
        children[left] = Node(
            elements: children[left].elements + [between] + right.elements,
            children: children[left].children + right.children)
        if children[left].isOverfull { split(left) }
    }
}
