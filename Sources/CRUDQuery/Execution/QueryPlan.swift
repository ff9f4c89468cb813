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
    package var scanned: Int
    /// How many records the page has, or were counted.
    package var returned: Int

    /// As `explain` returns it, whose page tells how many records it has.
    package func write(to writer: inout JSONWriter) {
        writer.object { writeMembers(to: &$0) }
    }

    /// Whole, as JSON text.
    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { plan in
            writeMembers(to: &plan)
            plan.member("returned", returned)
        }
        return writer.bytes
    }

    private func writeMembers(to plan: inout JSONWriter) {
        plan.key("index")
        if let index { plan.string(index) } else { plan.null() }
        plan.member("sort", sort.rawValue)
        plan.member("scanned", scanned)
    }

    /// In words, such as `3 of 200000 scanned records returned, no index, sorted by the daemon`.
    package var words: String {
        var text = "\(returned) of \(scanned) scanned records returned"
        if let index { text += ", index \(visible(index.utf8, atMost: 128))" } else { text += ", no index" }
        switch sort {
        case .id: break
        case .storage: text += ", sorted by the storage"
        case .host: text += ", sorted by the daemon"
        }
        return text
    }
}

extension QueryPlan {
    /// Reads ``json``; nil for any other text.
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
        var returned: Int?
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
                scanned = Int(exactly: count)
            } else if key.equals("returned", text), value.kind == .number,
                case .integer(let count) = ExactNumber(value, text)
            {
                returned = Int(exactly: count)
            }
        }
        guard let sort, let scanned, let returned, scanner.isAtEnd(text) else { return nil }
        self.init(index: index, sort: sort, scanned: scanned, returned: returned)
    }
}
