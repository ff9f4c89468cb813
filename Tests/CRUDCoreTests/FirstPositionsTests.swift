import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDCore

/// The first records of a sort order, found among all.
@Suite struct FirstPositionsTests {
    private static let orders = [
        "[]", #"[{"property":"a","order":"asc"}]"#, #"[{"property":"a","order":"desc"}]"#,
        #"[{"property":"a","order":"desc"},{"property":"b","order":"asc"}]"#,
    ]

    /// Positions with many ties, told apart by their ids.
    private static func positions(_ order: SortOrder, count: Int, _ generator: inout SeededGenerator) -> [SortPosition]
    {
        (0..<count).map { number in
            let values = order.keys.map { _ in
                let length = Int.random(in: 0...3, using: &generator) * 200
                return SortValue.string(
                    Array(repeating: UInt8.random(in: 0x61...0x63, using: &generator), count: length))
            }
            return SortPosition(values: values, id: Array("\(number)".utf8))
        }
    }

    @Test(arguments: orders, [1, 2, 7, 50, 51, 1000])
    func areThoseOfTheWholeOrder(text: String, limit: Int) throws {
        let order = try SortOrder(json: Array(text.utf8).span)
        var generator = SeededGenerator(seed: UInt64(limit))
        for count in [0, 1, 50] {
            let all = Self.positions(order, count: count, &generator)
            var first = FirstPositions(order, limit: limit, maximumBytes: .max)
            for position in all.shuffled(using: &generator) { first.insert(position) }
            let expected = all.sorted { order.compare($0, $1) < 0 }.prefix(limit)
            #expect(first.sorted == Array(expected))
            #expect(first.hasMore == (count > limit))
        }
    }

    /// Where memory bounds them there are fewer, at least one, and none is skipped: what comes after one that had no room
    /// is left out as well, however little it takes.
    @Test(arguments: orders, [0, 1000, 3000, 20_000])
    func areTheBeginningOfTheOrderWhereMemoryIsShort(text: String, maximumBytes: Int) throws {
        let order = try SortOrder(json: Array(text.utf8).span)
        var generator = SeededGenerator(seed: UInt64(maximumBytes))
        for _ in 0..<20 {
            let all = Self.positions(order, count: 60, &generator)
            var first = FirstPositions(order, limit: 40, maximumBytes: maximumBytes)
            for position in all.shuffled(using: &generator) { first.insert(position) }
            let sorted = first.sorted
            let expected = all.sorted { order.compare($0, $1) < 0 }.prefix(sorted.count)
            #expect(sorted == Array(expected))
            #expect(!sorted.isEmpty && first.hasMore)
            let texts = sorted.flatMap(\.values).reduce(0) { bytes, value in
                if case .string(let text) = value { bytes + text.count } else { bytes }
            }
            #expect(sorted.count == 1 || texts <= maximumBytes)
        }
    }

    /// A long one that others push out has taken no room from them for good.
    @Test func theRoomOfWhatIsPushedOutIsFreeAgain() throws {
        let order = try SortOrder(json: Array(Self.orders[1].utf8).span)
        let long = SortPosition(values: [.string(Array(repeating: 0x7A, count: 10_000))], id: [0])
        var first = FirstPositions(order, limit: 10, maximumBytes: 5000)
        first.insert(long)
        #expect(first.sorted == [long] && !first.hasMore)
        let short = (1...UInt8(10)).map { SortPosition(values: [.string([$0])], id: [$0]) }
        for position in short { first.insert(position) }
        #expect(first.sorted == short)
        #expect(first.hasMore)
    }
}
