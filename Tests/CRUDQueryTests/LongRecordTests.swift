import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Synchronization
import Testing

@testable import CRUDQuery

/// Records about which it takes long to decide. ``RandomQueryTests`` has them on every path.
@Suite struct LongRecordTests {
    /// Ten records, two of them long.
    private static func table(_ indexes: [String] = []) -> TableSource {
        let table = TableSource(indexes)
        for number in 0..<10 {
            let text = String(repeating: "x", count: number % 5 == 3 ? 1000 : 10)
            table.put("r\(number)", #"{"n":\#(number),"text":"\#(text)"}"#)
        }
        return table
    }

    private static func limits(_ longRecords: LongRecords) -> SearchLimits {
        var limits = SearchLimits(longRecords: longRecords)
        limits.longWork = 2500
        return limits
    }

    @Test func anotherThreadDecides() throws {
        let executor = BusyExecutor(refusals: 2)
        let query = try Query(filter: #"{"op":"like","args":[{"property":"text"},"%x"]}"#)
        let limits = Self.limits(.handedOver(executor))
        #expect(try Self.table().page(query, limits: limits).ids == (0..<10).map { "r\($0)" })
        #expect(executor.executed == 2)
        #expect(try Self.table().count(query, limits: limits) == 10)
        #expect(executor.executed == 2, "two patterns for a text of 1000 bytes are not long")
    }

    /// A search that waits for a thread is given one as soon as one is free. Before, it had to be continued for that,
    /// which nobody does with what waits.
    @Test func aDecisionBeginsWhenAThreadIsFree() throws {
        var limits = Self.limits(.handedOver(BusyExecutor(refusals: 5)))
        limits.longWork = 500
        let search = try RecordSearch(
            Query(filter: #"{"op":"like","args":[{"property":"text"},"%x"]}"#), .count, in: Self.table().target(),
            limits: limits)
        let table = Self.table()
        var questions = 0
        while try !search.advance(table, isAbandoned: { false }) {
            while search.isWaiting {
                questions += 1
                try #require(questions < 100)
            }
        }
        #expect(questions > 0)
        #expect(search.count == 10)
    }

    /// On an event loop, a search ends at such a record.
    @Test func aQuickSearchGivesUp() throws {
        let query = try Query(filter: #"{"op":"=","args":[{"property":"n"},3]}"#, limit: 10)
        let table = TableSource(["n"])
        table.put("long", #"{"n":3,"text":"\#(String(repeating: "x", count: 1 << 20))"}"#)
        let execution = try #require(
            try QueryExecution(quick: query, in: table.target(), maximumBytes: 1 << 22))
        #expect(try !execution.advance(table, isAbandoned: { false }))
        #expect(!execution.isWaiting)
        table.put("long", #"{"n":3}"#)
        let other = try #require(try QueryExecution(quick: query, in: table.target(), maximumBytes: 1 << 22))
        #expect(try other.advance(table, isAbandoned: { false }))
    }

    /// To prepare a long filter alone takes too long for an event loop.
    @Test func aLongFilterIsNotQuick() throws {
        let table = TableSource(["n"])
        func isQuick(_ values: Int) throws -> Bool {
            let list = (0..<values).map { #""value \#($0)""# }.joined(separator: ",")
            let conditions = #"{"op":"=","args":[{"property":"n"},3]},{"op":"in","args":[{"property":"t"},[\#(list)]]}"#
            let query = try Query(filter: #"{"op":"and","args":[\#(conditions)]}"#, limit: 10)
            return try QueryExecution(quick: query, in: table.target(), maximumBytes: 1 << 22) != nil
        }
        #expect(try isQuick(100))
        #expect(try !isQuick(9000))
    }

    /// A decoder that makes long texts of short items, as that of binary property lists does.
    private static let expanding: QueryTarget.Decoder = { (stored, item, work) throws(CRUDError) in
        item.append(stored.extracting(0..<stored.count - 1))
        item.append(#","more":""#)
        for _ in 0..<1000 {
            guard work.take(1000) else { throw .stopped }
            item.append(contentsOf: repeatElement(UInt8(ascii: "x"), count: 1000))
        }
        item.append(#""}"#)
    }

    /// How long the stored form is does not tell what it takes to decode it: that was done by the thread that scans.
    @Test(arguments: [false, true], [false, true])
    func aShortFormOfALongItem(isSorted: Bool, isReversed: Bool) throws {
        let table = Self.table(["n"])
        var query = try Query(
            filter: #"{"op":"<>","args":[{"property":"n"},5]}"#,
            sort: isSorted ? #"[{"property":"n","order":"\#(isReversed ? "desc" : "asc")"}]"# : nil, limit: 20)
        query.fields = try FieldProjection(json: Array(#"["n"]"#.utf8).span)
        let numbers = [0, 1, 2, 3, 4, 6, 7, 8, 9]
        let expected = (isSorted && isReversed ? numbers.reversed() : numbers).map { "r\($0)" }
        let executor = BusyExecutor(refusals: 1)
        let page = try table.page(
            query, in: table.target(decode: Self.expanding), limits: SearchLimits(longRecords: .handedOver(executor)))
        #expect(page.ids == expected)
        #expect(page.corrupt.isEmpty)
        #expect(executor.executed > 0)
        let quick = try #require(
            try QueryExecution(
                quick: Query(filter: #"{"op":"=","args":[{"property":"n"},3]}"#, limit: 10),
                in: table.target(decode: Self.expanding), maximumBytes: 1 << 24))
        #expect(try !quick.advance(table, isAbandoned: { false }))
    }

    /// As above, for changes.
    @Test func aShortFormOfALongChange() throws {
        let executor = BusyExecutor(refusals: 1)
        var query = ChangesQuery()
        query.filter = try Filter(cql2Text: "n <> 8")
        query.limit = 20
        let source = SequenceSource(Self.table())
        let execution = try ChangesExecution(
            query, in: QueryTarget(name: [], decode: Self.expanding), after: 0, through: 10, removalsAfter: 0,
            maximumBytes: 1 << 24, timeout: .seconds(60), limits: SearchLimits(longRecords: .handedOver(executor)))
        while try !execution.advance(source, isAbandoned: { false }) {}
        #expect(executor.executed == 10)
        #expect(execution.count == 10)
        #expect(execution.corrupt.isEmpty)
    }

    /// What nobody waits for any more is stopped within one interval of work.
    @Test func aDecisionIsStopped() throws {
        let patterns = (0..<900).map { #"{"op":"like","args":[{"property":"text"},"%\#($0)%"]}"# }
        let query = try Query(filter: #"{"op":"or","args":[\#(patterns.joined(separator: ","))]}"#)
        let table = TableSource([])
        table.put("long", #"{"text":"\#(String(repeating: "x", count: 1 << 20))"}"#)
        let questions = Atomic(0)
        let search = try RecordSearch(
            query, .count, in: table.target(), limits: Self.limits(.handedOver(BusyExecutor(refusals: 0))))
        let isAbandoned: @Sendable () -> Bool = {
            // The first one is the search's own; the item's scan asks once.
            questions.add(1, ordering: .relaxed).newValue > 5
        }
        #expect(try !search.advance(table, isAbandoned: isAbandoned))
        #expect(questions.load(ordering: .relaxed) == 6)
        #expect(try !search.advance(table, isAbandoned: isAbandoned))
        #expect(search.count == 0)
    }

    /// A long record that cannot be decoded has no sort value, so that a scan by key cannot be resumed behind it.
    @Test func aLongRecordIsCorrupt() throws {
        let table = Self.table(["n"])
        table.put("r4", #"{"n":4,"text":"\#(String(repeating: "x", count: 2000))"#)
        let query = try Query(sort: #"[{"property":"n","order":"desc"}]"#, limit: 20)
        var limits = Self.limits(.handedOver(BusyExecutor(refusals: 1)))
        limits.few = 0
        let page = try table.page(query, limits: limits)
        #expect(page.ids == [9, 8, 7, 6, 5, 3, 2, 1, 0].map { "r\($0)" })
        #expect(page.corrupt == ["r4"])
    }

    @Test(arguments: [0, 100, 1 << 20])
    func changesAreDecidedAboutByAnotherThread(longWork: Int) throws {
        let source = SequenceSource(Self.table())
        let executor = BusyExecutor(refusals: 1)
        var limits = Self.limits(.handedOver(executor))
        limits.longWork = longWork
        var query = ChangesQuery()
        query.filter = try Filter(cql2Text: "text LIKE '%xx%' AND n <> 8")
        query.limit = 4
        var shown: [String] = []
        var end: UInt64 = 0
        while true {
            let execution = try ChangesExecution(
                query, in: QueryTarget(name: []), after: end, through: 10, removalsAfter: 0, maximumBytes: 1 << 20,
                timeout: .seconds(60), limits: limits)
            while try !execution.advance(source, isAbandoned: { false }) {}
            let changes = try JSON(parsing: "[" + String(decoding: execution.changes, as: UTF8.self) + "]")
            shown += (changes.elements ?? []).map { change in
                (change["id"]?.string ?? "") + (change["matches"] == nil ? "" : "!")
            }
            end = execution.end
            if execution.reachesBound { break }
        }
        #expect(shown == (0..<10).map { $0 == 8 ? "r8!" : "r\($0)" })
        #expect((executor.executed > 0) == (longWork < 1000))
    }
}

/// The records of a table with the sequence numbers 1, 2 and so on.
final class SequenceSource: RecordSource {
    private let table: TableSource

    init(_ table: TableSource) {
        self.table = table
    }

    func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError) {
        for (index, id) in table.ids.enumerated().dropFirst(Int(scan.lowerSequence) - 1).prefix(scan.limit) {
            let wantsMore = id.withUnsafeBytes { id in
                (table.item(Array(id)) ?? []).withUnsafeBytes { item in
                    visitor.visit(FoundRecord(id: id, item: item, revision: id, sequence: UInt64(index + 1)))
                }
            }
            if !wantsMore { return }
        }
    }

    func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int { 0 }
}
