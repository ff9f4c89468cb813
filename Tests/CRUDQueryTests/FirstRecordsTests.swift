import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// The first records of a sort order, found among all.
@Suite struct FirstRecordsTests {
    private static let orders = [
        "[]", #"[{"property":"a","order":"asc"}]"#, #"[{"property":"a","order":"desc"}]"#,
        #"[{"property":"a","order":"desc"},{"property":"b","order":"asc"}]"#,
    ]

    private static func order(_ text: String) throws -> SortOrder { try SortOrder(json: Array(text.utf8).span) }

    /// Records with many ties, told apart by their ids, with contents of up to so many bytes.
    private static func records(
        _ order: SortOrder, count: Int, maximumBytes: Int = 0, _ generator: inout SeededGenerator
    ) -> [FirstRecords.Entry] {
        (0..<count).map { number in
            let values = order.keys.map { _ in
                let length = Int.random(in: 0...3, using: &generator) * 200
                return SortValue.string(
                    Array(repeating: UInt8.random(in: 0x61...0x63, using: &generator), count: length))
            }
            let bytes = Int.random(in: 0...maximumBytes, using: &generator)
            return FirstRecords.Entry(
                position: SortPosition(values: values, id: Array("\(number)".utf8)),
                content: Array(repeating: 0x78, count: bytes))
        }
    }

    private static func positions(_ records: [FirstRecords.Entry]) -> [SortPosition] { records.map(\.position) }

    @Test(arguments: orders, [1, 2, 7, 50, 51, 1000])
    func areThoseOfTheWholeOrder(text: String, limit: Int) throws {
        let order = try Self.order(text)
        var generator = SeededGenerator(seed: UInt64(limit))
        for count in [0, 1, 50] {
            let all = Self.records(order, count: count, &generator)
            let sorted = Self.positions(all).sorted { order.compare($0, $1) < 0 }
            for isShuffled in [true, false] {
                var first = FirstRecords(order, limit: limit, maximumBytes: .max)
                let inserted =
                    isShuffled
                    ? all.shuffled(using: &generator)
                    : all.sorted {
                        order.compare($0.position, $1.position) < 0
                    }
                for record in inserted { first.insert(record) }
                #expect(Self.positions(first.sorted) == Array(sorted.prefix(limit)))
                #expect(first.hasLeftOut == (count > limit))
                #expect(first.last?.position == sorted.prefix(limit).last)
            }
        }
    }

    /// Where bytes bound them there are fewer, at least one, and none is skipped: what comes after one that had no room
    /// is left out as well, however little it takes.
    @Test(arguments: orders, [0, 1000, 3000, 20_000])
    func areTheBeginningOfTheOrderWhereBytesAreShort(text: String, maximumBytes: Int) throws {
        let order = try Self.order(text)
        var generator = SeededGenerator(seed: UInt64(maximumBytes))
        for _ in 0..<20 {
            let all = Self.records(order, count: 60, maximumBytes: 1000, &generator)
            var first = FirstRecords(order, limit: 50, maximumBytes: maximumBytes)
            for record in all.shuffled(using: &generator) { first.insert(record) }
            let sorted = first.sorted
            let expected = Self.positions(all).sorted { order.compare($0, $1) < 0 }.prefix(sorted.count)
            #expect(Self.positions(sorted) == Array(expected))
            #expect(!sorted.isEmpty && first.hasLeftOut)
            let bytes = sorted.reduce(sorted.last?.position.maximumCursorBytes ?? 0) { $0 + $1.content.count + 1 }
            #expect(first.isOverfull == (bytes > maximumBytes) || sorted.count == 1)
            #expect(sorted.count == 1 || bytes <= maximumBytes)
        }
    }

    /// A long one that others push out takes no room from them.
    @Test func theRoomOfWhatIsPushedOutIsFreeAgain() throws {
        let order = try Self.order(Self.orders[1])
        func record(_ text: [UInt8], _ id: UInt8, bytes: Int) -> FirstRecords.Entry {
            FirstRecords.Entry(
                position: SortPosition(values: [.string(text)], id: [id]), content: Array(repeating: 0, count: bytes))
        }
        var first = FirstRecords(order, limit: 10, maximumBytes: 5000)
        first.insert(record([0x7A], 0, bytes: 10_000))
        #expect(first.sorted.count == 1 && !first.hasLeftOut && first.isOverfull)
        for number in 1...UInt8(10) { first.insert(record([number], number, bytes: 100)) }
        #expect(first.sorted.map(\.position.id) == (1...10).map { [$0] })
        #expect(first.hasLeftOut && !first.isOverfull)
    }

    @Test(arguments: [false, true])
    func whatIsFoundTwiceIsKeptOnce(isAscending: Bool) throws {
        let order = SortOrder()
        var first = FirstRecords(order, limit: 100, maximumBytes: .max)
        let numbers: [UInt8] = isAscending ? [1, 2, 2, 3, 3, 3] : [3, 1, 2, 3, 1, 2]
        for number in numbers {
            first.insert(FirstRecords.Entry(position: SortPosition(values: [], id: [number]), content: []))
        }
        #expect(first.sorted.map(\.position.id) == [[1], [2], [3]])
    }

    @Test func endBehindAPosition() throws {
        var first = FirstRecords(SortOrder(), limit: 5, maximumBytes: .max)
        for number in [9, 3, 5, 1, 7] as [UInt8] {
            first.insert(FirstRecords.Entry(position: SortPosition(values: [], id: [number]), content: [0]))
        }
        first.removeAll(behind: SortPosition(values: [], id: [5]))
        #expect(first.sorted.map(\.position.id) == [[1], [3], [5]])
    }
}
