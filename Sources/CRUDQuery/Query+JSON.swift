package import CRUDJSON
package import CRUDModel

// The form in which a query is passed to a child process:
// {"filter"?, "prefix"?, "sort"?, "position"?, "limit", "fields"?, "explain"?}, each as the protocol's parameter of
// that name; `prefix` and `position` as SortPosition writes them.
extension Query {
    /// Writes the query as a JSON object.
    package func write(to writer: inout JSONWriter) {
        writer.object { query in
            if let filter {
                query.key("filter")
                filter.write(to: &query)
            }
            if !prefix.isEmpty {
                query.key("prefix")
                query.string(utf8: prefix)
            }
            if !sort.keys.isEmpty {
                query.key("sort")
                sort.write(to: &query)
            }
            if let position {
                query.key("position")
                position.write(to: &query)
            }
            query.member("limit", limit)
            if let fields {
                query.key("fields")
                query.raw(fields.json)
            }
            if explains { query.member("explain", true) }
        }
    }

    /// Reads a query back.
    ///
    /// - Throws: `invalid_query` or `invalid_params` for anything that ``write(to:)`` does not write.
    package init(json text: Span<UInt8>) throws(CRUDError) {
        let members: [(key: JSONSlice, value: JSONSlice)]
        do throws(JSONSyntaxError) {
            members = try Self.members(text)
        } catch {
            throw CRUDError(.invalidQuery, "the query is not valid JSON: \(error.reason.rawValue)")
        }
        self.init()
        var position: JSONSlice?
        for (key, value) in members {
            let part = text.extracting(value.range)
            if key.equals("filter", text) {
                filter = try Filter(cql2JSON: part)
            } else if key.equals("prefix", text), value.kind == .string {
                prefix = value.decodedString(text)
            } else if key.equals("sort", text) {
                sort = try SortOrder(json: part)
            } else if key.equals("position", text) {
                position = value
            } else if key.equals("limit", text), value.kind == .number,
                case .integer(let limit) = ExactNumber(value, text), limit > 0
            {
                self.limit = Int(limit)
            } else if key.equals("fields", text) {
                fields = try FieldProjection(json: part)
            } else if key.equals("explain", text) {
                explains = value.kind == .true
            } else {
                throw CRUDError(.invalidQuery, "the query has an unknown or ill-typed member")
            }
        }
        if let position {
            self.position = try SortPosition(json: text.extracting(position.range), count: sort.keys.count)
        }
    }

    private static func members(
        _ text: Span<UInt8>
    ) throws(JSONSyntaxError) -> [(key: JSONSlice, value: JSONSlice)] {
        var scanner = JSONScanner()
        guard try scanner.peekKind(text) == .object else {
            throw JSONSyntaxError(reason: .unexpectedByte, offset: scanner.position)
        }
        var members: [(key: JSONSlice, value: JSONSlice)] = []
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            members.append((key, try scanner.value(text)))
        }
        try scanner.expectEnd(text)
        return members
    }
}
