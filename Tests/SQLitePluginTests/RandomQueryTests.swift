import CRUDJSON
import CRUDModel
import CRUDPluginABI
import CRUDTestSupport
import Testing

/// Random filters and sorts over a collection of everything that is easily got wrong: page after page, with indexes and
/// without, the plugin emits what evaluating every item says. A failure names its seed.
@Suite struct RandomQueryTests {
    /// Some of them cannot be indexed.
    private static let indexes = [
        "a", "b", "c", "a.b", "é", "e\u{301}", "a b", "in", "$", "[0]", "", #"quo"te"#, #"x\.y"#,
    ]

    private struct Sample {
        var id: String
        var item: [UInt8]
    }

    private func samples(_ count: Int, _ author: inout QueryAuthor) -> [Sample] {
        (0..<count).map { number in
            let start = author.pick(["", "a", "b", "é", "😀", "a/"])
            return Sample(id: "\(start)\(number)", item: Array(author.item().utf8))
        }
    }

    /// What the filter means, in the order of the sort: each item evaluated.
    private func expected(
        _ samples: [Sample], _ filter: String, _ order: SortOrder, prefix: String
    ) throws -> [SortPosition] {
        var evaluator = try FilterEvaluator(filter.isEmpty ? .constant(true) : try Filter(cql2JSON: filter))
        var values = SortValueReader(order)
        var positions: [SortPosition] = []
        for sample in samples where sample.id.utf8.starts(with: prefix.utf8) {
            guard try evaluator.matches(sample.item.span) else { continue }
            positions.append(SortPosition(values: try values.values(of: sample.item.span), id: Array(sample.id.utf8)))
        }
        return positions.sorted { order.compare($0, $1) < 0 }
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func pagesAreThoseOfPlainEvaluation(seed: UInt64) throws {
        let directory = try TemporaryDirectory()
        let store = try Store(path: "\(directory.path)/main.sqlite", synchronous: "off")
        let collection = try store.collection("samples", indexes: seed.isMultiple(of: 4) ? [] : Self.indexes)
        var author = QueryAuthor(seed: seed)
        let samples = samples(150, &author)
        try store.write(samples.map { .put($0.id, String(decoding: $0.item, as: UTF8.self)) }, to: collection)
        let reader = try store.reader()
        var served = 0
        for _ in 0..<200 {
            let filter = author.number(below: 4) == 0 ? "" : author.filter(depth: author.number(below: 3))
            let sort = author.number(below: 3) == 0 ? "" : author.sort()
            let prefix = author.number(below: 4) == 0 ? author.pick(["a", "é", "a/1", "x"]) : ""
            let limit = 1 + author.number(below: 60)
            let order = sort.isEmpty ? SortOrder() : try SortOrder(json: Array(sort.utf8).span)
            var expected = try expected(samples, filter, order, prefix: prefix)[...]
            let context = "\(filter) \(sort) \(prefix) \(limit), seed \(seed)"
            if !filter.isEmpty {
                #expect(try reader.count(collection, prefix: prefix, filter: filter) == expected.count, "\(context)")
            }
            var after = ""
            while true {
                let page = try reader.query(
                    collection, filter: filter, sort: sort, after: after, prefix: prefix, limit: limit)
                let ids = expected.prefix(limit).map { String(decoding: $0.id, as: UTF8.self) }
                #expect(page.ids == ids, "\(context) after \(after) by \(page.index)")
                if !page.index.isEmpty { served += 1 }
                guard page.ids == ids, let last = expected.prefix(limit).last else { break }
                expected = expected.dropFirst(limit)
                after = String(decoding: last.json, as: UTF8.self)
            }
        }
        #expect(seed.isMultiple(of: 4) ? served == 0 : served > 50)
    }

    /// More records than are looked at without a thought, so that indexes are followed in their order.
    @Test(arguments: ["asc", "desc"])
    func longWalksAlongAnIndex(direction: String) throws {
        let directory = try TemporaryDirectory()
        let store = try Store(path: "\(directory.path)/main.sqlite", synchronous: "off")
        let collection = try store.collection("samples", indexes: ["a", "b"])
        var author = QueryAuthor(seed: 1)
        let numbers = (0..<40).map { _ in author.number(below: 1_000_000) }
        let samples = (0..<12_000).map { number in
            let value = author.pick(numbers)
            let spelling = ["\(value)", "\(value).0", "\(value)e-3", "\"\(value)\"", "\"\(value)\\u0000\""]
            return Sample(id: "\(number)", item: Array(#"{"a":\#(author.pick(spelling)),"b":1,"c":\#(number)}"#.utf8))
        }
        try store.write(samples.map { .put($0.id, String(decoding: $0.item, as: UTF8.self)) }, to: collection)
        let reader = try store.reader()
        let (all, most) = ("", #"{"op":">=","args":[{"property":"a"},0]}"#)
        let (first, second) = (#"{"property":"a","order":"\#(direction)"}"#, #"{"property":"c"}"#)
        let strings = #"{"op":"<","args":[{"property":"a"},"~"]}"#
        for (filter, sort) in [
            (all, "[\(first)]"), (most, "[\(first)]"), (strings, "[\(first)]"), (all, "[\(first),\(second)]"),
        ] {
            let order = try SortOrder(json: Array(sort.utf8).span)
            var expected = try expected(samples, filter, order, prefix: "")[...]
            var after = ""
            while let last = expected.prefix(1997).last {
                let page = try reader.query(collection, filter: filter, sort: sort, after: after, limit: 1997)
                let ids = expected.prefix(1997).map { String(decoding: $0.id, as: UTF8.self) }
                #expect(page.ids == ids, "\(sort) \(filter)")
                #expect(page.index == "a")
                expected = expected.dropFirst(1997)
                after = String(decoding: last.json, as: UTF8.self)
            }
        }
    }
}
