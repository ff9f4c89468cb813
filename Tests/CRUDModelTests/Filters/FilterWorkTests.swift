import CRUDJSON
import Testing

@testable import CRUDModel

/// How much of an item is looked at: what a filter costs is linear in the item, and counted.
@Suite struct FilterWorkTests {
    private static let path = PropertyPath(names: ["a"])

    /// How many bytes are looked at for each byte of an item with one member.
    private func passes(_ filter: Filter, _ value: String) throws -> Int {
        let item = Array(#"{"a":\#(value)}"#.utf8)
        var evaluator = try FilterEvaluator(filter)
        _ = try evaluator.evaluate(item.span)
        #expect(!evaluator.work.isStopped)
        return evaluator.work.bytes / item.count
    }

    private static func string(_ part: String, _ count: Int) -> String {
        "\"" + String(repeating: part, count: count) + "\""
    }

    /// One pass to find the property, one for the pattern, and one more for each further 64 bytes of a segment.
    @Test(arguments: [
        ("%a%b", 2), (String(repeating: "%a", count: 500) + "%b", 2),
        ("%" + String(repeating: "a", count: 63) + "b%", 2),
        ("%" + String(repeating: "a_", count: 31) + "b%", 2), ("%" + String(repeating: "a", count: 999) + "b%", 17),
        ("%" + String(repeating: "a_", count: 500) + "b%", 17), (String(repeating: "_", count: 1000) + "%b%", 2),
        ("%" + String(repeating: "%", count: 1000) + "b", 2),
    ])
    func likeIsLinear(pattern: String, expected: Int) throws {
        let filter = Filter.like(Self.path, pattern: pattern)
        for count in [50_000, 100_000] {
            #expect(try passes(filter, Self.string("a", count)) <= expected, "\(pattern.prefix(20))")
        }
    }

    /// What is set up to search for a segment counts: it took most of the time where texts are short, and nothing knew.
    @Test func searchesCount() throws {
        func bytes(_ pattern: String, _ text: String) throws -> Int {
            var evaluator = try FilterEvaluator(.like(Self.path, pattern: pattern))
            _ = try evaluator.evaluate(Array(#"{"a":"\#(text)"}"#.utf8).span)
            return evaluator.work.bytes
        }
        let text = String(repeating: "xb", count: 250)
        // Seven words for each byte.
        #expect(try bytes("%" + String(repeating: "a_", count: 200) + "c%", text) > 257 * 7)
        #expect(try bytes(String(repeating: "%b", count: 240) + "%", text) > 240 * 64)
        // What is shorter than the segment is not searched.
        #expect(try bytes("%" + String(repeating: "a_", count: 500) + "%", text) < 2 * text.utf8.count)
    }

    /// Comparisons count, however short the texts are.
    @Test func comparisonsCount() throws {
        let text = String(repeating: "p", count: 3000)
        let conditions = (0..<100).map { Filter.comparison(.less, Self.path, .string("\(text)\($0)")) }
        #expect(try passes(.and(conditions.map(Filter.not)), "\"\(text)999\"") >= 100)
    }

    /// Of texts that have much in common the first byte that differs decides, wherever that is.
    @Test func comparesByWords() {
        for length in 0..<40 {
            let text = [UInt8](repeating: 0x70, count: length)
            for position in 0..<length {
                var other = text
                other[position] = 0xC3
                #expect(compare(0..<length, text.span, with: other) < 0)
                #expect(compare(0..<length, other.span, with: text) > 0)
                #expect(compare(position..<length, other.span, with: Array(text[position...])) > 0)
            }
            #expect(compare(0..<length, text.span, with: text) == 0)
            #expect(compare(0..<length, text.span, with: text + [0]) < 0)
            #expect(compare(0..<length, text.span, with: Array(text.dropLast())) >= 0)
        }
    }

    @Test func escapesAreDecodedOnce() throws {
        let conditions = (0..<900).map { Filter.comparison(.equal, Self.path, .string("b\($0)")) }
        #expect(try passes(.or(conditions), Self.string(#"\u0061"#, 100_000)) == 2)
        let patterns = (0..<900).map { Filter.like(Self.path, pattern: "b\($0)%") }
        #expect(try passes(.or(patterns), Self.string(#"\u0061"#, 100_000)) == 2)
        let lists = (0..<900).map { Filter.isIn(Self.path, [.string("b\($0)")]) }
        #expect(try passes(.or(lists), Self.string(#"\u0061"#, 100_000)) == 2)
    }

    @Test func numbersAreReadOnce() throws {
        let digits = String(repeating: "7", count: 100_000)
        let conditions = (0..<900).map { Filter.comparison(.equal, Self.path, .number(JSONNumber($0))) }
        for number in [digits, "0.\(digits)", "\(digits)e-100000", "-\(digits).\(digits)e5"] {
            #expect(try passes(.or(conditions), number) == 2)
        }
    }

    @Test func arraysAreScannedOnce() throws {
        let array = "[" + String(repeating: #"1,"x","\u0079","#, count: 20_000) + "0]"
        let conditions = (0..<900).map {
            Filter.arrayContains(Self.path, [.number(JSONNumber(5 + $0)), .string("z\($0)")])
        }
        #expect(try passes(.or(conditions), array) <= 2)
        var evaluator = try FilterEvaluator(
            .and([
                .arrayContains(Self.path, [.string("y"), .number(JSONNumber(1))]),
                .arrayContains(Self.path, [.string("x")]),
            ]))
        #expect(try evaluator.evaluate(Array(#"{"a":\#(array)}"#.utf8).span) == true)
    }

    /// A member that is repeated is forgotten at the cost of finding it, not of all that might have been found.
    @Test func repeatedMembers() throws {
        let paths = (0..<900).map { Filter.isNull(PropertyPath(names: ["a", "b\($0)"])) }
        let item = Array(("{" + String(repeating: #""a":{"b7":1},"#, count: 10_000) + #""a":{"b8":1}}"#).utf8)
        var evaluator = try FilterEvaluator(.and([.not(paths[8]), paths[7]]))
        #expect(try evaluator.evaluate(item.span) == true)
        evaluator = try FilterEvaluator(.and(paths))
        #expect(try evaluator.evaluate(item.span) == false)
        #expect(evaluator.work.bytes < 2 * item.count)
    }

    /// An evaluation stops within one interval after it has been asked to.
    @Test func stops() throws {
        let patterns = (0..<900).map { Filter.like(Self.path, pattern: "%b\($0)%") }
        let item = Array(#"{"a":\#(Self.string("a", 1 << 20))}"#.utf8)
        var evaluator = try FilterEvaluator(.or(patterns))
        var questions = 0
        evaluator.work = Work {
            questions += 1
            return questions == 20
        }
        #expect(try evaluator.evaluate(item.span) == nil)
        #expect(evaluator.work.isStopped)
        #expect(questions == 20)
        #expect(evaluator.work.bytes < item.count + 21 * Work.interval)
        evaluator.work = Work()
        #expect(try evaluator.evaluate(Array(#"{"a":"ab7"}"#.utf8).span) == true)
    }

    @Test func patternsHaveALimit() throws {
        let longest = String(repeating: "é", count: 512)
        _ = try Filter(cql2Text: "a LIKE '\(longest)'")
        for pattern in [longest + "%", #"\%"# + longest] {
            let filter = Filter.like(Self.path, pattern: pattern)
            for read in [
                { _ = try Filter(cql2Text: filter.cql2Text) }, { _ = try Filter(cql2JSON: filter.cql2JSON) },
                { _ = try FilterEvaluator(filter) },
            ] {
                let error = #expect(throws: CRUDError.self) { try read() }
                #expect(error?.code == .limitExceeded)
                #expect(error?.details.limit == "filter_pattern")
                #expect(error?.details.maximum == 1024)
            }
        }
    }
}
