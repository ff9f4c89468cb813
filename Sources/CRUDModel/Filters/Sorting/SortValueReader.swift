package import CRUDJSON

/// Reads the values that records are sorted by from their items. One reader serves one thread at a time.
package struct SortValueReader: ~Copyable {
    private var finder: PropertyFinder
    /// For each key whether its order is reversed.
    private let isDescending: [Bool]

    package init(_ order: SortOrder) {
        finder = PropertyFinder(order.keys.map(\.path))
        isDescending = order.keys.map(\.isDescending)
    }

    /// Finds the values of an item, for the functions below, which are given the same item.
    ///
    /// - Throws: `JSONSyntaxError` where the item is not valid JSON; with an empty order nothing is looked at.
    package mutating func find(in item: Span<UInt8>) throws(JSONSyntaxError) {
        var work = Work()
        try find(in: item, &work)
    }

    /// As ``find(in:)``; where the work has been stopped, what is found means nothing.
    package mutating func find(in item: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) {
        if !isDescending.isEmpty { try finder.find(in: item, &work) }
    }

    /// The value for the key at an index of the order.
    package func value(_ key: Int, in item: Span<UInt8>) -> SortValue {
        var work = Work()
        return value(key, in: item, &work)
    }

    /// As ``value(_:in:)``.
    package func value(_ key: Int, in item: Span<UInt8>, _ work: inout Work) -> SortValue {
        SortValue(finder[key], item, &work)
    }

    /// The item's position.
    package func position(id: Span<UInt8>, in item: Span<UInt8>) -> SortPosition {
        var work = Work()
        return position(id: id, in: item, &work)
    }

    /// As ``position(id:in:)``.
    package func position(id: Span<UInt8>, in item: Span<UInt8>, _ work: inout Work) -> SortPosition {
        SortPosition(
            values: isDescending.indices.map { value($0, in: item, &work) },
            id: id.withUnsafeBufferPointer { Array($0) })
    }

    /// How the value for one key compares with another, in the direction of the order: below 0, 0 or above.
    package func compare(_ key: Int, in item: Span<UInt8>, with other: SortValue) -> Int {
        var work = Work()
        return compare(key, in: item, with: other, &work)
    }

    /// As ``compare(_:in:with:)``.
    package func compare(_ key: Int, in item: Span<UInt8>, with other: SortValue, _ work: inout Work) -> Int {
        let order = SortValue.compare(finder[key], item, with: other, &work)
        return isDescending[key] ? -order : order
    }

    /// How the item's position compares with another: below 0 if it comes first, 0 if they are equal, or above. Nothing
    /// is allocated unless a string has escapes.
    package func compare(id: Span<UInt8>, in item: Span<UInt8>, with other: SortPosition) -> Int {
        var work = Work()
        return compare(id: id, in: item, with: other, &work)
    }

    /// As ``compare(id:in:with:)``.
    package func compare(
        id: Span<UInt8>, in item: Span<UInt8>, with other: SortPosition, _ work: inout Work
    ) -> Int {
        for key in isDescending.indices {
            let order = compare(key, in: item, with: other.values[key], &work)
            if order != 0 { return order }
        }
        return CRUDModel.compare(0..<id.count, id, with: other.id)
    }
}
