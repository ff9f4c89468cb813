import CRUDModel

/// A way along an index in the order of a sort's first key: the parts of the index in that order, cut at the place behind
/// which records are wanted.
struct IndexWalk {
    let isDescending: Bool
    /// Whether there is no other key, so that records of one value come by id.
    let isOnlyKey: Bool
    /// What is to be walked, part after part.
    let parts: [IndexRange]

    private static let all: [IndexRange] = [
        .type(.null), .type(.false), .type(.true), .numbers(.binary64(-.infinity), .binary64(.infinity)),
        .strings([], nil), .type(.array), .type(.object),
    ]

    /// - Parameter range: what may be left out of sight; nil: nothing.
    init(_ order: SortOrder, _ after: SortPosition?, _ range: IndexRange?) {
        let isDescending = order.keys.first?.isDescending ?? false
        var parts = range.map { [$0] } ?? (isDescending ? Self.all.reversed() : Self.all)
        if let value = after?.values.first {
            parts = parts.compactMap { Self.cut($0, at: value, isDescending) }
        }
        self.isDescending = isDescending
        self.parts = parts
        isOnlyKey = order.keys.count == 1
    }

    func isBefore(_ left: SortValue, _ right: SortValue) -> Bool {
        let order = left.compare(with: right)
        return isDescending ? order > 0 : order < 0
    }

    /// The first value, in this order, that may stand behind an inexact key.
    func earliest(_ key: IndexKey) -> SortValue {
        switch key {
        case .real(let value): .number(ExactNumber(isDescending ? value.raised : value.lowered))
        // Cut at a NUL, it is a prefix of the string; with a byte of 1 behind it, it is above all of those.
        case .text(let text): .string(isDescending ? text + [1] : text)
        case .integer(let integer): .number(.integer(integer))
        case .null, .end: .null
        }
    }

    /// What is left of a part at and behind a value; nil for nothing.
    private static func cut(_ part: IndexRange, at value: SortValue, _ isDescending: Bool) -> IndexRange? {
        switch (part, value) {
        case (.numbers(let lower, let upper), .number(let number)):
            return part.intersection(isDescending ? .numbers(lower, number) : .numbers(number, upper))
        case (.strings(let lower, let upper), .string(let text)):
            return part.intersection(isDescending ? .strings(lower, text) : .strings(text, upper))
        default:
            // Any value of the part stands where all of them do.
            guard let sample = part.sample else { return nil }
            let order = sample.compare(with: value)
            return isDescending ? (order <= 0 ? part : nil) : (order >= 0 ? part : nil)
        }
    }
}

extension IndexRange {
    /// A value of its type.
    fileprivate var sample: SortValue? {
        switch self {
        case .type: run.sortValue
        case .numbers: .number(.integer(0))
        case .strings: .string([])
        }
    }
}

/// A place in a run of an index, one key after the other.
struct KeyCursor {
    private let run: IndexRange.Run
    private var hasStarted = false
    /// Where it stands; nil in front of the run and behind it.
    private(set) var key: IndexKey?

    init(_ run: IndexRange.Run) {
        self.run = run
    }

    /// The entries of the key.
    var point: IndexRange.Run? {
        key.map { IndexRange.Run(rank: run.rank, lower: $0, upper: $0) }
    }

    /// What finds the next key in ``rest(isDescending:)``.
    func statement(isDescending: Bool) -> QueryStatement {
        isDescending ? (hasStarted ? .nextDown : .firstDown) : (hasStarted ? .nextUp : .firstUp)
    }

    /// The part of the run that lies behind the key.
    func rest(isDescending: Bool) -> IndexRange.Run {
        var rest = run
        if let key {
            if isDescending { rest.upper = key } else { rest.lower = key }
        }
        return rest
    }

    mutating func advance(to key: IndexKey?) {
        hasStarted = true
        self.key = key
    }
}
