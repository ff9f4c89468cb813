import CRUDJSON
import CRUDModel

@testable import CRUDQuery

/// CQL2 text: a filter is the same however it is written and read back, and finds the same records by an index.
enum FilterInput {
    private static let items = [
        "{}", #"{"a":1,"b":"x","c":[1,"x",true],"d":{"e":-1.5e3},"name":"Bob","age":18}"#,
        #"{"a":null,"b":"%_\\","c":{},"d":[],"name":"\ud83d\ude00","age":9007199254740993}"#, "[]", "17",
    ].map { Array($0.utf8) }

    static func parse(_ input: Span<UInt8>) {
        let text = input.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) }
        guard let text, let filter = try? Filter(cql2Text: text) else { return }
        check(filter)
    }

    static func check(_ filter: Filter) {
        let written = filter.cql2Text
        require((try? Filter(cql2Text: written)) == filter, "another filter is read from \(written)")
        require((try? Filter(cql2JSON: filter.cql2JSON)) == filter, "another filter is read from \(filter.cql2JSON)")
        guard var evaluator = try? FilterEvaluator(filter) else { return }
        for item in items {
            guard let matches = try? evaluator.matches(item.span) else { fatalError("valid JSON is not evaluated") }
            if matches { checkRanges(filter, item) }
        }
    }

    /// A record that matches is in the ranges of every index that the filter could be served by.
    private static func checkRanges(_ filter: Filter, _ item: [UInt8]) {
        let paths = ["a", "b", "c", "d.e", "name", "age"].compactMap { PropertyPath(text: $0) }
        var encoder = IndexKeyEncoder(paths)
        try? encoder.encode(item.span) { index, key in
            guard !key.isEmpty, let ranges = KeyRanges(filter, of: paths[index]) else { return }
            require(
                ranges.ranges.contains { $0.contains(Array(key)) },
                "\(filter) does not find an item by an index of \(paths[index].text)")
        }
    }
}
