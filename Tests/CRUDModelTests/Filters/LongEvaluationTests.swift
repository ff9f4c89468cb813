import CRUDJSON
import CRUDTestSupport
import Testing

@testable import CRUDModel

/// However long an item is and whatever is asked of it, whoever waits is asked now and then whether to stop. Work is
/// counted, not time: ``Work/interval`` takes some hundred microseconds.
@Suite struct LongEvaluationTests {
    /// The most that is done between two questions of an evaluation, and of what sorting needs.
    ///
    /// - Parameter questions: after how many the evaluation is stopped.
    private static func longestStep(
        _ filter: String, _ sort: String, _ item: String, stoppingAfter questions: Int = 200
    ) throws -> Int {
        var evaluator = try FilterEvaluator(Filter(cql2JSON: Array(filter.utf8).span))
        var values = SortValueReader(try SortOrder(json: Array(sort.utf8).span))
        let item = Array(item.utf8)
        var count = 0
        evaluator.work = Work {
            count += 1
            return count > questions
        }
        _ = try? evaluator.evaluate(item.span)
        if !evaluator.work.isStopped {
            try values.find(in: item.span, &evaluator.work)
            _ = values.position(id: [1].span, in: item.span, &evaluator.work)
        }
        #expect(count >= min(questions, evaluator.work.bytes / maximumStep))
        return evaluator.work.longestStep
    }

    /// What is asked once for each interval may be passed over by a step of as much, and what positions leave
    /// uncounted.
    private static let maximumStep = 2 * Work.interval + (8 << 10)

    @Test(arguments: 1...48 as ClosedRange<UInt64>)
    func randomItemsAndFilters(seed: UInt64) throws {
        var author = LongItemAuthor(seed: seed)
        let item = author.item(bytes: seed.isMultiple(of: 10) ? 4 << 20 : 1 << (16 + Int(seed % 4)))
        let (filter, sort) = (author.filter(), author.sort())
        let step = try Self.longestStep(filter, sort, item)
        #expect(step <= Self.maximumStep, "\(filter.prefix(1000)) of \(item.prefix(100))")
    }

    /// An attempt at each byte of the text took as long as the pattern is: this took hours, without a question.
    @Test(arguments: ["%\(String(repeating: "a", count: 1000))b%", "%\(String(repeating: "a_", count: 500))b%"])
    func patternThatNearlyMatchesEverywhere(pattern: String) throws {
        let filter = #"{"op":"like","args":[{"property":"t"},"\#(pattern)"]}"#
        let item = #"{"t":"\#(String(repeating: "a", count: 4 << 20))"}"#
        #expect(try Self.longestStep(filter, "[]", item) <= Self.maximumStep)
    }
}
