import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// What searches hold together is bounded, and each of them ends.
@Suite struct SearchMemoryTests {
    private static let text = String(repeating: "x", count: 1 << 20)

    /// Records of a megabyte, about which another thread decides.
    private static func table(_ count: Int, _ indexes: [String] = []) -> TableSource {
        let table = TableSource(indexes)
        for number in 0..<count { table.put("r\(number)", #"{"n":\#(number),"text":"\#(text)"}"#) }
        return table
    }

    /// - Parameter executor: decides about them.
    private static func limits(_ memory: SearchMemory, _ executor: any LongRecordExecutor) -> SearchLimits {
        SearchLimits(longRecords: .handedOver(executor), memory: memory)
    }

    /// Executes a search until it ends or waits.
    private static func isDone(_ search: RecordSearch, _ table: TableSource) throws -> Bool {
        for _ in 0..<1000 {
            if search.isWaiting { return false }
            if try search.advance(table, isAbandoned: { false }) { return true }
        }
        throw Failure("the search does not end")
    }

    @Test func longRecordsWaitForMemory() throws {
        let table = Self.table(4)
        let memory = SearchMemory(bytes: 4 << 20)
        let query = try Query(filter: #"{"op":"like","args":[{"property":"text"},"%x"]}"#)
        let limits = Self.limits(memory, BusyExecutor(refusals: 0))
        // This one's decision waits for a thread, with a record of one megabyte in its hands.
        var first: RecordSearch? = try RecordSearch(
            query, .count, in: table.target(), limits: Self.limits(memory, NoExecutor()))
        #expect(try first.map { try !Self.isDone($0, table) } == true)
        let second = try RecordSearch(query, .count, in: table.target(), limits: limits)
        #expect(try !Self.isDone(second, table), "there is memory for one")
        // Whoever comes later does not overtake.
        let third = try RecordSearch(query, .count, in: table.target(), limits: limits)
        #expect(try !Self.isDone(third, table))
        first = nil
        #expect(try Self.isDone(second, table))
        #expect(second.count == 4)
        #expect(try !Self.isDone(third, table), "the second one still holds all")
    }

    @Test func whoLeavesTheLineMakesRoom() throws {
        let table = Self.table(1)
        let memory = SearchMemory(bytes: 4 << 20)
        let query = try Query(filter: #"{"op":"like","args":[{"property":"text"},"%x"]}"#)
        var searches = try (0..<3).map { number in
            try RecordSearch(
                query, .count, in: table.target(),
                limits: Self.limits(memory, number == 0 ? NoExecutor() : BusyExecutor(refusals: 0)))
        }
        for search in searches { #expect(try !Self.isDone(search, table)) }
        searches.remove(at: 1)
        searches.remove(at: 0)
        #expect(try Self.isDone(searches[0], table))
        #expect(searches[0].count == 1)
    }

    /// Pages that grow over what there is are made one after the other, and are as without a bound.
    @Test func pagesWaitForMemory() throws {
        let table = TableSource([])
        for number in 0..<30 { table.put("r\(10 + number)", #"{"text":"\#(Self.text.prefix(100_000))"}"#) }
        let query = try Query(limit: 30)
        let limits = Self.limits(SearchMemory(bytes: 7 << 20), BusyExecutor(refusals: 0))
        var searches = try (0..<3).map { _ in
            try RecordSearch(query, .page, in: table.target(), maximumBytes: 4 << 20, limits: limits)
        }
        #expect(try Self.isDone(searches[0], table))
        #expect(try !Self.isDone(searches[1], table))
        #expect(try !Self.isDone(searches[2], table))
        for _ in 0..<3 {
            #expect(try Self.isDone(searches[0], table))
            #expect(searches[0].records.map(\.position.id) == table.ids)
            #expect(searches[0].continuation == nil)
            searches.removeFirst()
        }
    }

    @Test func changesWaitForMemory() throws {
        let source = SequenceSource(Self.table(3))
        let memory = SearchMemory(bytes: 4 << 20)
        var query = ChangesQuery()
        query.filter = try Filter(cql2Text: "text LIKE '%xx%'")
        func execution(_ executor: any LongRecordExecutor) throws -> ChangesExecution {
            try ChangesExecution(
                query, in: QueryTarget(name: []), after: 0, through: 3, removalsAfter: 0, maximumBytes: 1 << 24,
                timeout: .seconds(60), limits: Self.limits(memory, executor))
        }
        var first: ChangesExecution? = try execution(NoExecutor())
        #expect(try first?.advance(source, isAbandoned: { false }) == false)
        let second = try execution(BusyExecutor(refusals: 0))
        #expect(try !second.advance(source, isAbandoned: { false }))
        #expect(second.isWaiting)
        #expect(second.count == 0)
        first = nil
        #expect(!second.isWaiting)
        while try !second.advance(source, isAbandoned: { false }) { try #require(!second.isWaiting) }
        #expect(second.count == 3)
    }
}

/// Has no free thread.
private struct NoExecutor: LongRecordExecutor {
    func execute(_ job: @escaping @Sendable (_ yield: @escaping () -> Void) -> Void) -> Bool { false }
}
