/// Queries as sections 3 and 4 of the protocol read, over items that have been taken apart: slow, and with nothing in
/// common with what it is to test.
package struct ReferenceTable {
    package struct Record {
        package var id: String
        package var item: JSON

        package init(id: String, item: JSON) {
            self.id = id
            self.item = item
        }
    }

    private let records: [Record]

    package init(_ records: [Record]) {
        self.records = records
    }

    /// The ids of the records that match, in order.
    package func ids(filter: String?, prefix: String, sort: String?) throws -> [String] {
        let filter = try filter.map { ReferenceEvaluator(try JSON(parsing: $0)) }
        let order = try ReferenceOrder(sort)
        return records.filter { record in
            record.id.utf8.starts(with: prefix.utf8) && filter.map { $0.evaluate(record.item) == true } ?? true
        }
        .sorted { order.compare($0, $1) < 0 }
        .map(\.id)
    }
}

/// A sort order, from the parameter.
package struct ReferenceOrder {
    private let keys: [(path: String, isDescending: Bool)]

    package init(_ sort: String?) throws {
        keys = try (sort.map { try JSON(parsing: $0).elements ?? [] } ?? []).map { key in
            (key["property"]?.string ?? "", key["order"]?.string == "desc")
        }
    }

    package func compare(_ left: ReferenceTable.Record, _ right: ReferenceTable.Record) -> Int {
        let order = compareValues(left.item, right.item)
        return order != 0 ? order : ReferenceEvaluator.compare(left.id, right.id)
    }

    /// Whether two items are sorted by the same values.
    package func compareValues(_ left: JSON, _ right: JSON) -> Int {
        for (path, isDescending) in keys {
            let order = Self.compare(ReferenceEvaluator.value(path, left), ReferenceEvaluator.value(path, right))
            if order != 0 { return isDescending ? -order : order }
        }
        return 0
    }

    private static func compare(_ left: JSON?, _ right: JSON?) -> Int {
        switch (left?.content, right?.content) {
        case (.string(let left)?, .string(let right)?): ReferenceEvaluator.compare(left, right)
        case (.number?, .number?): ReferenceEvaluator.compare(number: left?.text ?? "", right?.text ?? "")
        default: rank(left) - rank(right)
        }
    }

    private static func rank(_ value: JSON?) -> Int {
        switch value?.content {
        case nil, .null?: 0
        case .boolean(let value)?: value ? 2 : 1
        case .number?: 3
        case .string?: 4
        case .array?: 5
        case .object?: 6
        }
    }
}
