import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// Records that cannot be decoded are left out and named, and the others are returned.
@Suite struct CorruptRecordTests {
    private static func table(_ corrupt: [String], indexes: [String] = ["a"]) -> TableSource {
        let table = TableSource(indexes)
        for number in 0..<5 { table.put("id\(number)", #"{"a":\#(number)}"#) }
        for (number, item) in corrupt.enumerated() { table.put("id\(number)x", item) }
        return table
    }

    private static let faults = ["", "{", #"{"a":1} 1"#, #"{"a":tru}"#, "{\"a\":\"\u{1}\"}"]

    @Test(arguments: [
        (nil, nil), (#"{"op":">=","args":[{"property":"a"},0]}"#, nil), (nil, #"[{"property":"a"}]"#),
        (#"{"op":">=","args":[{"property":"b"},0]}"#, #"[{"property":"a","order":"desc"}]"#), ("true", nil),
    ])
    func areNamed(filter: String?, sort: String?) throws {
        let table = Self.table(Self.faults)
        for limits in [SearchLimits(), .records(1)] {
            let page = try table.page(Query(filter: filter, sort: sort), limits: limits)
            #expect(Set(page.corrupt) == Set((0..<5).map { "id\($0)x" }) && page.corrupt.count == 5)
            #expect(page.ids.count == (filter?.contains("\"b\"") == true ? 0 : 5))
        }
    }

    @Test func whereItemsAreNotLookedAtTheyAreLikeOthers() throws {
        let table = Self.table(Self.faults)
        // A page that shows nothing of them is not made of what cannot be decoded all the same.
        let (page, whole) = (try table.page(Query(fields: "[]")), try table.page(Query()))
        #expect(page.ids == whole.ids && page.corrupt == whole.corrupt && !page.corrupt.isEmpty)
        let execution = try MatchExecution(Query(), in: table.target())
        #expect(try execution.find(table, isAbandoned: { false }))
        #expect(execution.found.count == 10 && execution.corrupt.isEmpty)
    }

    @Test func countsAndDeletionsNameThem() throws {
        let table = Self.table(["{"])
        let filter = try Query(filter: #"{"op":">","args":[{"property":"a"},1]}"#)
        let count = try CountExecution(filter, in: table.target())
        #expect(try count.advance(table, isAbandoned: { false }))
        #expect(String(decoding: count.result, as: UTF8.self) == #"{"count":3,"corrupt":["id0x"]}"#)
        let match = try MatchExecution(filter, in: table.target())
        #expect(try match.find(table, isAbandoned: { false }))
        #expect(match.found.count == 3 && match.corrupt == [Array("id0x".utf8)])
        let clean = try CountExecution(filter, in: table.target())
        table.remove(Array("id0x".utf8))
        #expect(try clean.advance(table, isAbandoned: { false }))
        #expect(String(decoding: clean.result, as: UTF8.self) == #"{"count":3}"#)
    }

    /// Changes, whose numbers count from 1.
    private final class ChangesSource: RecordSource {
        private let changes: [(id: String, item: String)]

        init(_ changes: [(id: String, item: String)]) {
            self.changes = changes
        }

        func scan(_ scan: RecordScan, into visitor: any RecordVisitor) {
            for (index, change) in changes.enumerated() where index + 1 >= Int(scan.lowerSequence) {
                let (id, item) = (Array(change.id.utf8), Array(change.item.utf8))
                let continues = id.withUnsafeBytes { id in
                    item.withUnsafeBytes { item in
                        visitor.visit(FoundRecord(id: id, item: item, revision: id, sequence: UInt64(index) + 1))
                    }
                }
                if !continues { return }
            }
        }

        func count(_ scan: RecordScan, limit: Int) -> Int { 0 }
    }

    /// Their names take room of a page of changes. What does not fit behind them has a place on the next one.
    @Test func pageOfNamesEndsBeforeAChange() throws {
        let item = "\"\(String(repeating: "x", count: 200))\""
        let source = ChangesSource((0..<15).map { ("corrupt\($0)", "{") } + [("good", item)])
        var places: [UInt64] = [0]
        var changes: [String] = []
        while let place = places.last, place < 16, places.count < 4 {
            let execution = try ChangesExecution(
                ChangesQuery(), in: QueryTarget(name: []), after: place, through: 16, removalsAfter: 0,
                maximumBytes: 900, timeout: .seconds(60))
            #expect(try execution.advance(source, isAbandoned: { false }))
            places.append(execution.end)
            changes.append(String(decoding: execution.changes, as: UTF8.self))
        }
        #expect(places == [0, 15, 16])
        #expect(changes.count == 2 && changes[0].isEmpty && changes[1].contains("good"))
    }

    @Test func atMostAHundredAreNamed() throws {
        let table = Self.table(Array(repeating: "{", count: 300))
        let page = try table.page(Query(), limits: .records(3))
        #expect(page.ids.count == 5 && page.corrupt.count == 100 && Set(page.corrupt).count == 100)
        let narrow = try table.page(Query(), maximumBytes: 1200)
        #expect(narrow.ids.count == 5 && (1..<100).contains(narrow.corrupt.count) && narrow.bytes <= 1200)
    }

    /// A decoder's refusal is the record's, not the call's.
    @Test(arguments: [CRUDError.Code.corrupt, .limitExceeded])
    func whatCannotBeDecoded(code: CRUDError.Code) throws {
        let table = Self.table([])
        let target = table.target { stored, text, _ throws(CRUDError) in
            let last = stored[stored.count - 2]
            guard last != UInt8(ascii: "3") else { throw CRUDError(code, "") }
            text += Array(#"{"a":"#.utf8) + [last] + Array("}".utf8)
        }
        for limits in [SearchLimits(), .records(1)] {
            let page = try table.page(Query(sort: #"[{"property":"a","order":"desc"}]"#), in: target, limits: limits)
            #expect(page.ids == ["id4", "id2", "id1", "id0"] && page.corrupt == ["id3"])
            let unsorted = try table.page(Query(), in: target, limits: limits)
            #expect(unsorted.ids == ["id0", "id1", "id2", "id4"] && unsorted.corrupt == ["id3"])
        }
    }
}
