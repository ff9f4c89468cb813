import CRUDJSON
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDModel

/// However long an item is and whatever is asked of it, whoever waits is asked now and then whether to stop.
@Suite struct LongEvaluationTests {
    /// Measures the processor time of this thread between two questions: it does not depend on what else is executed.
    private final class Questions {
        private(set) var longest = Duration.zero
        private var last: Duration
        private let end: Duration

        /// - Parameter total: how long the evaluation may take before it is stopped.
        init(total: Duration) {
            last = Self.now
            end = last + total
        }

        private static var now: Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }

        /// Whether to stop.
        func ask() -> Bool {
            let now = Self.now
            longest = max(longest, now - last)
            last = now
            return now >= end
        }
    }

    /// The longest time between two questions of an evaluation, and of what sorting needs.
    private static func longestGap(_ filter: String, _ sort: String, _ item: String) throws -> Duration {
        var evaluator = try FilterEvaluator(Filter(cql2JSON: Array(filter.utf8).span))
        var values = SortValueReader(try SortOrder(json: Array(sort.utf8).span))
        let item = Array(item.utf8)
        let questions = Questions(total: .milliseconds(150))
        evaluator.work = Work { questions.ask() }
        _ = try evaluator.evaluate(item.span)
        if !evaluator.work.isStopped { try values.find(in: item.span, &evaluator.work) }
        _ = questions.ask()
        return questions.longest
    }

    /// An unoptimised build takes up to 0.3 s for one pass over four mebibytes, in which nothing is asked.
    private static let maximumGap = Duration.seconds(2)

    @Test(arguments: 1...48 as ClosedRange<UInt64>)
    func randomItemsAndFilters(seed: UInt64) throws {
        var author = LongItemAuthor(seed: seed)
        let item = author.item(bytes: seed.isMultiple(of: 10) ? 4 << 20 : 1 << (16 + Int(seed % 4)))
        let (filter, sort) = (author.filter(), author.sort())
        let gap = try Self.longestGap(filter, sort, item)
        #expect(gap < Self.maximumGap, "\(filter.prefix(1000)) of \(item.prefix(100))")
    }

    /// An attempt at each byte of the text took as long as the pattern is: this took hours, without a question.
    @Test(arguments: ["%\(String(repeating: "a", count: 1000))b%", "%\(String(repeating: "a_", count: 500))b%"])
    func patternThatNearlyMatchesEverywhere(pattern: String) throws {
        let filter = #"{"op":"like","args":[{"property":"t"},"\#(pattern)"]}"#
        let item = #"{"t":"\#(String(repeating: "a", count: 4 << 20))"}"#
        #expect(try Self.longestGap(filter, "[]", item) < Self.maximumGap)
    }
}
