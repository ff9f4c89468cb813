/// A place in an order.
protocol TreePosition {
    /// Less than, equal to or greater than 0 as this position lies before, at or behind another.
    func compare(to other: Self) -> Int

    /// A number that is in the same order, but may be the same for several positions.
    var prefix: PositionPrefix { get }
}

/// The beginning of a position: what lies in a node beside an element, so that most comparisons need not read the
/// element, which is elsewhere in memory.
struct PositionPrefix: BitwiseCopyable, Sendable {
    let high: UInt64
    let low: UInt64

    /// - Parameters:
    ///   - high: what is compared first.
    ///   - low: what is compared where that is equal.
    init(_ high: UInt64, _ low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The first 16 bytes, in their order.
    init(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count < 16 else {
            high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
            low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            return
        }
        var words: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
        high = UInt64(bigEndian: words.0)
        low = UInt64(bigEndian: words.1)
    }

    /// Less than, equal to or greater than 0 as this one lies before, at or behind another.
    func compare(to other: PositionPrefix) -> Int {
        if high != other.high { return high < other.high ? -1 : 1 }
        return low == other.low ? 0 : low < other.low ? -1 : 1
    }
}

/// What a tree holds: something that has a position in an order, and may expire.
protocol TreeElement: Sendable {
    associatedtype Position: TreePosition

    /// Calls `body` with the element's position, which is valid until `body` returns.
    func withPosition<Result>(_ body: (Position) -> Result) -> Result

    /// When the element expires, and counts no more, in milliseconds since 1970-01-01 UTC; `Int64.max`: never.
    var expiry: Int64 { get }
}

/// A place between the elements of a tree: just before a position, or just behind it.
struct Cut<Position> {
    let position: Position
    let isBehind: Bool

    static func before(_ position: Position) -> Cut { Cut(position: position, isBehind: false) }
    static func behind(_ position: Position) -> Cut { Cut(position: position, isBehind: true) }
}

/// The elements between two cuts. Nil: from the first one, to the last one.
struct TreeRange<Position: TreePosition> {
    var lower: Cut<Position>?
    var upper: Cut<Position>?

    /// The part of the range that a visit has yet to reach once it has been at a position.
    func resumed(behind position: Position, isReversed: Bool) -> TreeRange {
        if isReversed {
            let isBehind = upper.map { $0.position.compare(to: position) > 0 } ?? true
            return isBehind ? TreeRange(lower: lower, upper: .before(position)) : self
        }
        let isBefore = lower.map { $0.position.compare(to: position) <= 0 } ?? true
        return isBefore ? TreeRange(lower: .behind(position), upper: upper) : self
    }
}

/// Elements in order, one at each position: a B-tree of value types.
///
/// A copy of the tree shares all nodes with the original, and a change copies just the nodes on the path to the
/// element, each once for as long as nobody else shares it. So a reader has a snapshot of its own for the price of one
/// retain, a batch is rolled back by dropping the copy that it was applied to, and no reader ever waits for the writer.
struct OrderedTree<Element: TreeElement>: Sendable {
    private var root = Node<Element>()
    /// How often an element has got another place than it had.
    private var moves: UInt64 = 0

    /// Where an element is, for as long as none is inserted or removed.
    struct Place {
        fileprivate let path: NodePath
        fileprivate let moves: UInt64
    }

    init() {}

    /// - Parameter elements: in any order, no two at one position.
    init(_ elements: [Element]) {
        self.init(
            sorted: elements.sorted { one, other in
                one.withPosition { position in other.withPosition { position.compare(to: $0) < 0 } }
            })
    }

    /// - Parameter elements: in order, no two at one position.
    init(sorted elements: [Element]) {
        root = Node(sorted: elements[...])
    }

    func element(at position: Element.Position) -> Element? {
        find(position)?.element
    }

    /// The element at a position, and where it is.
    func find(_ position: Element.Position) -> (element: Element, place: Place)? {
        var path = NodePath()
        guard let element = root.element(at: position, &path) else { return nil }
        return (element, Place(path: path, moves: moves))
    }

    /// Stores an element, in the place of one at the same position if there is one.
    ///
    /// - Parameter place: of that one; nil: it is looked for.
    mutating func insert(_ element: Element, at place: Place? = nil) {
        if let place, place.moves == moves {
            root.replace(at: place.path, by: element)
            return
        }
        if element.withPosition({ root.insert(element, at: $0) }) == nil { moves += 1 }
        if root.isOverfull {
            let (left, middle, right) = root.halves
            root = Node(elements: [middle], children: [left, right])
        }
    }

    /// Removes the element at a position, if there is one.
    mutating func remove(at position: Element.Position) {
        moves += 1
        _ = root.remove(at: position)
        if root.elements.isEmpty, let only = root.children.first { root = only }
    }

    /// Visits the elements of a range in order, or in reverse, until `body` returns false.
    func visit(_ range: TreeRange<Element.Position>, isReversed: Bool = false, _ body: (Element) -> Bool) {
        _ = root.visit(range, isReversed: isReversed, body)
    }

    /// How many elements of a range have not expired at `now`. The time grows with the logarithm of their number, and
    /// linearly with the number of those in the range that have expired.
    func count(_ range: TreeRange<Element.Position>, at now: Int64) -> Int {
        root.count(range, at: now)
    }
}
