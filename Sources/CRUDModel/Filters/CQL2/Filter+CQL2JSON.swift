package import CRUDJSON

extension Filter {
    /// Reads the JSON encoding of CQL2, which the wire protocol uses:
    /// `{"op": ">=", "args": [{"property": "age"}, 18]}`.
    ///
    /// - Throws: ``CRUDError`` with the code `invalidQuery` and the invalid part in ``CRUDError/Details/node``, or
    ///   `limitExceeded` for more than 1000 operations, more than 10000 values in lists, or a pattern of more
    ///   than 1024 bytes.
    /// - SeeAlso: OGC 21-065r2, clause 7, <https://docs.ogc.org/is/21-065r2/21-065r2.html>
    public init(cql2JSON text: String) throws(CRUDError) {
        try self.init(cql2JSON: Array(text.utf8).span)
    }

    /// Reads the JSON encoding of CQL2 from UTF-8.
    ///
    /// - Throws: `invalidQuery` with the invalid part as `node`, or `limitExceeded`.
    package init(cql2JSON text: Span<UInt8>) throws(CRUDError) {
        var reader = CQL2JSONReader()
        self = try reader.read(text)
    }

    /// The JSON encoding of CQL2, on one line.
    ///
    /// Reading it results in an equal filter, with one exception: ``and(_:)`` and ``or(_:)`` of fewer than two filters,
    /// which CQL2 does not have, are simplified.
    public var cql2JSON: String {
        var writer = JSONWriter()
        write(to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// Writes the JSON encoding of CQL2.
    package func write(to writer: inout JSONWriter) {
        switch self {
        case .constant(let value): writer.bool(value)
        case .and(let filters): Self.write("and", filters, ofNone: true, to: &writer)
        case .or(let filters): Self.write("or", filters, ofNone: false, to: &writer)
        case .not(let filter): writer.operation("not") { filter.write(to: &$0) }
        case .comparison(let comparison, let path, let literal):
            writer.operation(comparison.rawValue) {
                $0.property(path)
                $0.literal(literal)
            }
        case .like(let path, let pattern):
            writer.operation("like") {
                $0.property(path)
                $0.string(pattern)
            }
        case .between(let path, let low, let high):
            writer.operation("between") {
                $0.property(path)
                $0.literal(low)
                $0.literal(high)
            }
        case .isIn(let path, let literals):
            writer.operation("in") {
                $0.property(path)
                $0.array { list in for literal in literals { list.literal(literal) } }
            }
        case .isNull(let path): writer.operation("isNull") { $0.property(path) }
        case .arrayContains(let path, let literals):
            writer.operation("a_contains") {
                $0.property(path)
                $0.array { list in for literal in literals { list.literal(literal) } }
            }
        }
    }

    private static func write(
        _ name: String, _ filters: [Filter], ofNone value: Bool, to writer: inout JSONWriter
    ) {
        switch filters.count {
        case 0: writer.bool(value)
        case 1: filters[0].write(to: &writer)
        default: writer.operation(name) { for filter in filters { filter.write(to: &$0) } }
        }
    }
}

extension JSONWriter {
    fileprivate mutating func operation(_ name: String, _ arguments: (inout JSONWriter) -> Void) {
        object {
            $0.member("op", name)
            $0.key("args")
            $0.array(arguments)
        }
    }

    fileprivate mutating func property(_ path: PropertyPath) {
        object { $0.member("property", path.text) }
    }

    fileprivate mutating func literal(_ literal: Literal) {
        switch literal {
        case .string(let text): string(text)
        case .number(let number): raw(number.text.utf8)
        case .boolean(let value): bool(value)
        }
    }
}
