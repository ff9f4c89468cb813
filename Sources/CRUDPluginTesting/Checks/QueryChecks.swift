import CRUDJSON
import CRUDModel
import CRUDPluginABI

/// Filters and sorts, against what evaluating every item says. What the plugin refuses it need not know; the rest must be
/// right to the record.
enum QueryChecks {
    /// Properties that are there, null, missing, of other types, nested, and oddly named.
    private static let items = [
        #"{"a":1,"b":"x","c":{"d":1}}"#, #"{"a":1.0,"b":"X","c":{"d":"1"}}"#, #"{"a":2,"b":"\u00e9"}"#,
        #"{"a":10,"b":"e\u0301"}"#, #"{"a":-1,"b":""}"#, #"{"a":9007199254740993,"b":"xy"}"#,
        #"{"a":9007199254740992,"b":"x%"}"#, #"{"a":1e400,"b":"x_"}"#, #"{"a":0.1,"b":"\ud83d\ude00"}"#,
        #"{"a":null,"b":null}"#, #"{"a":"1","b":1}"#, #"{"a":true,"b":false}"#, #"{"a":false}"#, #"{"a":[1,"x",null]}"#,
        #"{"a":["x","y"],"b":[]}"#, #"{"a":{"d":1}}"#, #"{"A":1}"#, "{}", "[]", "null", "1", #""a""#,
        #"{"a.b":1,"":2}"#,
        #"{"c":{"d":null}}"#, #"{"c":[{"d":1}]}"#, #"{"a":-0.0,"b":"x\u0000y"}"#, #"{"a":1,"b":"x\u0000z"}"#,
    ]

    private static let conditions = [
        "", "true", "false", "a = 1", "a <> 1", "a < 2", "a <= 1", "a > 1", "a >= 9007199254740993", "a = 1.0",
        "a = 9007199254740992", "a = '1'", "a = TRUE", "a = FALSE", "a > '0'", "b = 'x'", "b < 'y'", "b >= 'é'",
        "b = 'é'", "b LIKE 'x%'", "b LIKE '_'", "b LIKE '%'", "b LIKE 'x\\%'", "b LIKE ''", "NOT b LIKE 'x%'",
        "a BETWEEN 0 AND 2", "b BETWEEN 'a' AND 'x'", "NOT (a BETWEEN 0 AND 2)", "a IN (1, 2, 10)", "a IN ('1', 2)",
        "b IN ('x', 'é')", "NOT (a IN (1))", "a IS NULL", "a IS NOT NULL", "c.d = 1", "c.d IS NULL", "c.d = '1'",
        "a = 1 AND b = 'x'", "a = 1 OR b IS NULL", "NOT (a = 1 AND b = 'x')", "NOT (a = 1 OR b = 'x')",
        "(a = 1 OR a = 2) AND NOT (b = 'x' AND c.d = 1)", "a = 1 AND true", "a = 1 OR false", "missing = 1",
        "NOT (missing = 1)", "A = 1", "a = 0", "a < 0.1", "a > 1e300",
    ]

    private static let orders: [[(path: String, isDescending: Bool)]] = [
        [], [("a", false)], [("a", true)], [("b", false)], [("b", true)], [("a", false), ("b", true)],
        [("a", true), ("b", false)], [("c.d", false)], [("c.d", true), ("a", true)], [("missing", false)],
    ]

    private struct Stored {
        let record: PluginRecord
        let item: [UInt8]
    }

    /// The collection, and what is in it. Only items in JSON can be looked into.
    private static func fill(
        _ backend: PluginBackend, _ trial: Trial, indexes: [String]
    ) throws -> (PluginCollection, [Stored]) {
        guard trial.format == "json" else { throw NotApplicable(text: "queries are for collections of format json") }
        let collection = try backend.open(trial.name("queries"), format: trial.format, indexes: indexes)
        let stored = items.enumerated().map { number, item in
            let id = "\(number.isMultiple(of: 2) ? "a" : "b")\(number)"
            return Stored(record: PluginRecord(id, item), item: Array(item.utf8))
        }
        _ = try backend.write(
            stored.shuffled().map { .put($0.record.id, bytes: $0.item, in: collection) })
        return (collection, stored)
    }

    /// Each filter by itself and within a prefix, found and counted.
    static func filters(_ trial: Trial) throws {
        let backend = try trial.open()
        for indexes in [[], ["a", "b", "c.d"]] {
            let (collection, stored) = try fill(backend, trial, indexes: indexes)
            let reader = try backend.reader()
            for condition in conditions {
                let filter = condition.isEmpty ? "" : try Filter(cql2Text: condition).cql2JSON
                for prefix in ["", "a"] {
                    let query = Query(condition: condition, filter: filter, order: SortOrder(), prefix: prefix)
                    let expected = try query.records(among: stored)
                    try compare(query, of: collection, reader, expected, trial)
                    guard !filter.isEmpty else { continue }
                    try ignoringRefusal {
                        trial.expect(
                            try reader.count(collection, prefix: prefix, filter: filter), is: expected.count,
                            "a count of \(query)")
                    }
                }
            }
        }
    }

    /// Each order, with and without a filter, in pages of every size.
    static func sorts(_ trial: Trial) throws {
        let backend = try trial.open()
        for indexes in [[], ["a", "b", "c.d"]] {
            let (collection, stored) = try fill(backend, trial, indexes: indexes)
            let reader = try backend.reader()
            for keys in orders {
                for condition in ["", "a IS NOT NULL", "a > 0", "b LIKE 'x%' OR a = 1"] {
                    let order = SortOrder(
                        keys.compactMap { key in
                            PropertyPath(text: key.path).map { SortKey($0, isDescending: key.isDescending) }
                        })
                    let query = Query(
                        condition: condition, filter: condition.isEmpty ? "" : try Filter(cql2Text: condition).cql2JSON,
                        order: order, prefix: "")
                    try compare(query, of: collection, reader, query.records(among: stored), trial)
                }
            }
        }
    }

    /// Has the plugin answer a query in pages of several sizes.
    private static func compare(
        _ query: Query, of collection: PluginCollection, _ reader: PluginReader,
        _ expected: [(record: PluginRecord, position: SortPosition)], _ trial: Trial
    ) throws {
        for limit in [1, 5, 1000] {
            var rest = expected[...]
            var after = ""
            try ignoringRefusal {
                repeat {
                    let page = rest.prefix(limit)
                    let withItems = limit != 5
                    let records = try reader.query(
                        collection, filter: query.filter, sort: query.sort, after: after, prefix: query.prefix,
                        limit: limit, withItems: withItems)
                    let wanted = page.map { withItems ? $0.record : PluginRecord($0.record.id, bytes: []) }
                    trial.expect(
                        records, is: wanted, "\(query) after \(after.isEmpty ? "nothing" : after), \(limit) at most")
                    guard records == wanted, let last = page.last else { return }
                    rest = rest.dropFirst(limit)
                    after = String(decoding: last.position.json, as: UTF8.self)
                } while !rest.isEmpty
            }
        }
    }

    /// A plugin may refuse what it is not sure of.
    private static func ignoringRefusal(_ call: () throws -> Void) throws {
        do {
            try call()
        } catch let fault as CallFault where fault.status == CRUDD_UNSUPPORTED {
            return
        }
    }

    /// What is asked, and what that means.
    private struct Query: CustomStringConvertible {
        let condition: String
        /// In CQL2 JSON.
        let filter: String
        let order: SortOrder
        let prefix: String

        var sort: String {
            guard !order.keys.isEmpty else { return "" }
            var writer = JSONWriter()
            order.write(to: &writer)
            return String(decoding: writer.bytes, as: UTF8.self)
        }

        var description: String {
            let keys = order.keys.map { "\($0.isDescending ? "-" : "")\($0.path)" }.joined(separator: ",")
            return "\"\(condition)\" by \(keys.isEmpty ? "id" : keys), prefix \"\(prefix)\""
        }

        func records(among stored: [Stored]) throws -> [(record: PluginRecord, position: SortPosition)] {
            var evaluator = try FilterEvaluator(filter.isEmpty ? .constant(true) : Filter(cql2JSON: filter))
            var reader = SortValueReader(order)
            var found: [(record: PluginRecord, position: SortPosition)] = []
            for each in stored where each.record.id.utf8.starts(with: prefix.utf8) {
                guard try evaluator.matches(each.item.span) else { continue }
                let values = try reader.values(of: each.item.span)
                found.append((each.record, SortPosition(values: values, id: Array(each.record.id.utf8))))
            }
            return found.sorted { order.compare($0.position, $1.position) < 0 }
        }
    }
}
