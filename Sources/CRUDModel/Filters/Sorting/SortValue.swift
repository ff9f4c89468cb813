package import CRUDJSON

/// What a record is sorted by: a property's value, as far as sorting tells values apart.
///
/// The cases stand in the order of their types. Missing is ``null``; two arrays tie, and so do two objects.
package enum SortValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case number(ExactNumber)
    /// UTF-8.
    case string([UInt8])
    case array
    case object

    package init(_ slice: JSONSlice, _ text: Span<UInt8>) {
        switch slice.kind {
        case .null: self = .null
        case .false: self = .boolean(false)
        case .true: self = .boolean(true)
        case .number: self = .number(ExactNumber(slice, text))
        case .string: self = .string(slice.decodedString(text))
        case .array: self = .array
        case .object: self = .object
        }
    }

    private var rank: Int {
        switch self {
        case .null: 0
        case .boolean: 1
        case .number: 2
        case .string: 3
        case .array: 4
        case .object: 5
        }
    }

    /// How this value compares with another: below 0, 0 or above.
    package func compare(with other: SortValue) -> Int {
        switch (self, other) {
        case (.boolean(let left), .boolean(let right)): (left ? 1 : 0) - (right ? 1 : 0)
        case (.number(let left), .number(let right)): left == right ? 0 : left < right ? -1 : 1
        case (.string(let left), .string(let right)): CRUDModel.compare(0..<left.count, left.span, with: right)
        default: rank - other.rank
        }
    }
}

/// Takes the values that records are sorted by out of their items. One reader serves one thread at a time.
package struct SortValueReader: ~Copyable {
    private var finder: PropertyFinder
    private let count: Int

    package init(_ order: SortOrder) {
        finder = PropertyFinder(order.keys.map(\.path))
        count = order.keys.count
    }

    /// The values of an item, one for each key.
    ///
    /// - Throws: JSONSyntaxError where the item is no JSON.
    package mutating func values(of item: Span<UInt8>) throws(JSONSyntaxError) -> [SortValue] {
        guard count > 0 else { return [] }
        try finder.find(in: item)
        var values: [SortValue] = []
        values.reserveCapacity(count)
        for index in 0..<count { values.append(SortValue(finder[index], item)) }
        return values
    }
}
