/// The work of evaluating an item, counted in bytes that are looked at, and whether it is to stop.
///
/// One item can take seconds: a filter may have hundreds of patterns for a text of some megabytes. A client that waits
/// for that may go, so that it is asked now and then whether to stop. An evaluation that is stopped has no result:
/// whatever it returns or throws means nothing.
///
/// Whatever evaluates an item counts with it: the scanner, filters, sort keys, projections, patches, codecs. A loop
/// over bytes counts them by their positions, which takes one comparison for most of them:
///
///     work.begin(at: index)
///     while index < end, work.passes(index) { … }
///     work.end(at: index)
package struct Work {
    /// How much has been done so far.
    package private(set) var bytes = 0
    /// Whether the evaluation has been stopped.
    package private(set) var isStopped = false
    /// The most that has been done between two questions.
    package private(set) var longestStep = 0
    private var bytesUntilAsking: Int
    private var mark = 0
    /// Positions are counted once they have advanced so far; at once where the work has been stopped, so that every
    /// loop finds out.
    private var step = Self.stride
    private let question: Question

    private enum Question {
        case none
        /// It stops without one.
        case limit(Int)
        case shouldStop(() -> Bool)
    }

    /// How much is done between two questions: some hundred microseconds at the most.
    package static let interval = 64 << 10
    static let stride = 4 << 10

    /// - Parameter shouldStop: asked once for each ``interval``; nil: the work is not stopped.
    package init(shouldStop: (() -> Bool)? = nil) {
        question = shouldStop.map { .shouldStop($0) } ?? .none
        bytesUntilAsking = Self.interval
    }

    /// - Parameter bytes: the work stops when more than that has been done, and at the next step at the latest.
    package init(atMost bytes: Int) {
        question = .limit(bytes)
        bytesUntilAsking = bytes
    }

    /// Counts what is about to be done.
    ///
    /// - Returns: whether to do it.
    @inline(__always)
    package mutating func take(_ bytes: Int) -> Bool {
        self.bytes &+= bytes
        bytesUntilAsking &-= bytes
        if bytesUntilAsking <= 0 { ask() }
        return !isStopped
    }

    @inline(never)
    private mutating func ask() {
        longestStep = max(longestStep, Self.interval - bytesUntilAsking)
        switch question {
        case .none: break
        case .limit: isStopped = true
        case .shouldStop(let shouldStop): if !isStopped { isStopped = shouldStop() }
        }
        if isStopped { step = 0 }
        bytesUntilAsking = Self.interval
    }

    /// Begins again with the limit of ``init(atMost:)``: another item is about to be evaluated.
    @inline(__always)
    package mutating func renew() {
        guard case .limit(let bytes) = question else { return }
        bytesUntilAsking = bytes
        isStopped = false
        step = Self.stride
    }

    /// Whether there is a limit, that of ``init(atMost:)``.
    package var isLimited: Bool { if case .limit = question { true } else { false } }

    // MARK: Positions

    /// Whether a whole text may be scanned without counting positions in between.
    @inline(__always)
    func isShort(_ text: Span<UInt8>) -> Bool { text.count <= step }

    /// Begins to count positions.
    @inline(__always)
    package mutating func begin(at position: Int) { mark = position }

    /// Counts what has been passed over, if it is much.
    ///
    /// - Returns: whether to continue.
    @inline(__always)
    package mutating func passes(_ position: Int) -> Bool { position &- mark < step || end(at: position) }

    /// Counts what has been passed over.
    ///
    /// - Returns: whether to continue.
    @inline(__always)
    @discardableResult
    package mutating func end(at position: Int) -> Bool {
        let passed = position &- mark
        mark = position
        return take(passed)
    }
}

extension Array {
    /// Sorts the elements; where the work is stopped, the order means nothing.
    ///
    /// - Parameters:
    ///   - work: what the comparisons count.
    ///   - areInOrder: whether the first of two elements precedes the second; counts what that takes.
    package mutating func sort(_ work: inout Work, by areInOrder: (Element, Element, inout Work) -> Bool) {
        try? sort { left, right in
            if work.isStopped { throw JSONSyntaxError(reason: .stopped, offset: 0) }
            return areInOrder(left, right, &work)
        }
    }
}

/// Counts the positions of a scan.
protocol ScanMeter {
    /// How far a scan may go without asking.
    static var stride: Int { get }
    mutating func passes(_ position: Int) -> Bool
}

extension Work: ScanMeter {}

/// For a scan that is not stopped.
struct Unmetered: ScanMeter {
    static var stride: Int { .max }
    @inline(__always)
    mutating func passes(_ position: Int) -> Bool { true }
}
