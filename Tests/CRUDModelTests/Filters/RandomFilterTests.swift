import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Testing

/// Random filters over random items: encoding and reading result in an equal filter, and the evaluator agrees with the
/// reference. A failure names its seed.
@Suite struct RandomFilterTests {
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func bothEncodingsRoundTrip(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed)
        for _ in 0..<200 {
            let json = author.filter(depth: 4)
            let filter = try Filter(cql2JSON: json)
            #expect(try JSON(parsing: filter.cql2JSON).means(try JSON(parsing: json)), "\(json)")
            #expect(try Filter(cql2JSON: filter.cql2JSON) == filter, "\(json)")
            #expect(try Filter(cql2Text: filter.cql2Text) == filter, "\(json) \(filter.cql2Text)")
            #expect(filter.hashValue == (try Filter(cql2Text: filter.cql2Text)).hashValue)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func evaluatesAsTheReferenceDoes(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed, isUntidy: true)
        let items = try (0..<60).map { _ in try JSON(parsing: author.item()) }
        for _ in 0..<120 {
            let text = author.filter()
            let reference = ReferenceEvaluator(try JSON(parsing: text))
            var evaluator = try FilterEvaluator(try Filter(cql2JSON: text))
            for item in items {
                let result = try evaluator.evaluate(Array(item.text.utf8).span)
                guard result != reference.evaluate(item) else { continue }
                Issue.record("\(text) is \(String(describing: result)) for \(item.text)")
            }
        }
    }

    /// Normalising an item does not change the value of any filter.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func normalisationChangesNothing(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed << 8, isUntidy: true)
        var normalization = ItemNormalization()
        var changed = 0
        for _ in 0..<200 {
            let text = author.item()
            let item = Array(text.utf8)
            guard let normal = normalization.normalized(item.span) else { continue }
            changed += 1
            let spelling = String(decoding: normal, as: UTF8.self)
            #expect(try JSON(parsing: spelling).means(try JSON(parsing: text)), "\(text) became \(spelling)")
            #expect(normalization.normalized(normal.span) == nil)
            let filter = author.filter()
            var evaluator = try FilterEvaluator(try Filter(cql2JSON: filter))
            #expect(try evaluator.evaluate(normal.span) == evaluator.evaluate(item.span), "\(filter) for \(text)")
        }
        #expect(changed > 0)
    }
}
