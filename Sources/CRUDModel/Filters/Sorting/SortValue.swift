package import CRUDJSON

/// A property's value for sorting, without what sorting ignores.
///
/// The cases have the order of their types. Missing is ``null``; two arrays tie, and so do two objects.
package enum SortValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case number(ExactNumber)
    /// UTF-8.
    case string([UInt8])
    case array
    case object

    package init(_ slice: JSONSlice, _ text: Span<UInt8>, _ work: inout Work) {
        switch slice.kind {
        case .null: self = .null
        case .false: self = .boolean(false)
        case .true: self = .boolean(true)
        case .number: self = .number(ExactNumber(slice, text, &work))
        case .string: self = .string(slice.decodedString(text, &work))
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

    /// Compares the value at `slice` with another, without a copy of it: below 0, 0 or above.
    static func compare(
        _ slice: JSONSlice, _ text: Span<UInt8>, with other: SortValue, _ work: inout Work
    ) -> Int {
        if case .string(let string) = other, slice.kind == .string {
            CRUDModel.compare(slice, text, with: string, &work)
        } else if slice.kind == .string {
            SortValue.string([]).rank - other.rank
        } else {
            SortValue(slice, text, &work).compare(with: other)
        }
    }

    /// Compares this value with another: below 0, 0 or above.
    package func compare(with other: SortValue) -> Int {
        switch (self, other) {
        case (.boolean(let left), .boolean(let right)): (left ? 1 : 0) - (right ? 1 : 0)
        case (.number(let left), .number(let right)): left == right ? 0 : left < right ? -1 : 1
        case (.string(let left), .string(let right)): CRUDModel.compare(0..<left.count, left.span, with: right)
        default: rank - other.rank
        }
    }
}
