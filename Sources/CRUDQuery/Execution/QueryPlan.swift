package import CRUDJSON
import CRUDModel

/// How a query was executed, as `explain` shows it.
package struct QueryPlan: Sendable {
    /// Who has brought the records into their order.
    enum Sort: String {
        /// Nobody: they came by id.
        case id
        case storage, host
    }

    /// The property path whose index has served; nil: none has.
    var index: String?
    var sort: Sort
    /// How many records were looked at.
    var scanned: Int

    package func write(to writer: inout JSONWriter) {
        writer.object { plan in
            plan.key("index")
            if let index { plan.string(index) } else { plan.null() }
            plan.member("sort", sort.rawValue)
            plan.member("scanned", scanned)
        }
    }
}

extension QueryPlan {
    /// Reads what ``write(to:)`` has written; nil for any other text.
    package init?(json text: Span<UInt8>) {
        do throws(JSONSyntaxError) {
            try self.init(parsing: text)
        } catch {
            return nil
        }
    }

    private init?(parsing text: Span<UInt8>) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        guard try scanner.peekKind(text) == .object else { return nil }
        var index: String?
        var sort: Sort?
        var scanned: Int?
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            let value = try scanner.value(text)
            if key.equals("index", text) {
                if value.kind == .string { index = String(decoding: value.decodedString(text), as: UTF8.self) }
            } else if key.equals("sort", text), value.kind == .string {
                sort = Sort(rawValue: String(decoding: value.decodedString(text), as: UTF8.self))
            } else if key.equals("scanned", text), value.kind == .number,
                case .integer(let count) = ExactNumber(value, text)
            {
                scanned = Int(count)
            }
        }
        guard let sort, let scanned, scanner.isAtEnd(text) else { return nil }
        self.init(index: index, sort: sort, scanned: scanned)
    }
}
