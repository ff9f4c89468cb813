extension Filter {
    /// Reads the text encoding of CQL2: `age >= 18 AND name LIKE 'B%'`.
    ///
    /// Keywords are case-insensitive. Text is written in single quotes, in which `''` and `\'` are a quote; a backslash
    /// before a quote, and only there, is written twice. A property whose name is not an identifier, or is a keyword,
    /// is written in double quotes, in which `""` is a double quote; dots and backslashes have the same meaning as in
    /// ``PropertyPath/text``.
    ///
    /// - Throws: ``CRUDError`` with the code `invalidQuery` and the position in ``CRUDError/Details/column``, or
    ///   `limitExceeded` for more than 1000 operations, more than 10000 values in lists, or a pattern of more
    ///   than 1024 bytes.
    /// - SeeAlso: OGC 21-065r2, clause 6 and annex B, <https://docs.ogc.org/is/21-065r2/21-065r2.html>
    public init(cql2Text text: String) throws(CRUDError) {
        var parser = try CQL2TextParser(text)
        self = try parser.parse()
    }

    /// The text encoding of CQL2. Reading it results in an equal filter, with the same exception as for ``cql2JSON``.
    public var cql2Text: String { text(.whole) }

    /// The text encoding of CQL2 with `?` in place of every value and of the values of every list, as
    /// `zip = ? AND note LIKE ?`: what filters have in common that differ in their values only. Long names are cut.
    package var shape: String { text(.shape) }

    private func text(_ style: CQL2TextStyle) -> String {
        switch self {
        case .constant(let value): value ? "TRUE" : "FALSE"
        case .and(let filters):
            switch filters.count {
            case 0: "TRUE"
            case 1: filters[0].text(style)
            default:
                filters.map { $0.isJunction ? "(\($0.text(style)))" : $0.text(style) }.joined(separator: " AND ")
            }
        case .or(let filters):
            switch filters.count {
            case 0: "FALSE"
            case 1: filters[0].text(style)
            default:
                filters.map { $0.isDisjunction ? "(\($0.text(style)))" : $0.text(style) }.joined(separator: " OR ")
            }
        case .not(let filter): filter.predicate(not: "NOT ", style) ?? "NOT (\(filter.text(style)))"
        case .comparison(let comparison, let path, let literal):
            "\(style.text(path)) \(comparison.rawValue) \(style.text(literal))"
        case .arrayContains(let path, let literals): "A_CONTAINS(\(style.text(path)), (\(style.text(literals))))"
        case .like, .between, .isIn, .isNull: predicate(not: "", style) ?? ""
        }
    }

    /// A predicate whose negation has a form of its own; nil for any other filter.
    private func predicate(not: String, _ style: CQL2TextStyle) -> String? {
        switch self {
        case .like(let path, let pattern): "\(style.text(path)) \(not)LIKE \(style.text(.string(pattern)))"
        case .between(let path, let low, let high):
            "\(style.text(path)) \(not)BETWEEN \(style.text(low)) AND \(style.text(high))"
        case .isIn(let path, let literals): "\(style.text(path)) \(not)IN (\(style.text(literals)))"
        case .isNull(let path): "\(style.text(path)) IS \(not)NULL"
        default: nil
        }
    }

    /// Whether the text is an AND or OR expression.
    private var isJunction: Bool {
        switch self {
        case .and(let filters): filters.count > 1 || filters.first?.isJunction == true
        default: isDisjunction
        }
    }

    private var isDisjunction: Bool {
        switch self {
        case .or(let filters): filters.count > 1 || filters.first?.isDisjunction == true
        case .and(let filters): filters.count == 1 && filters[0].isDisjunction
        default: false
        }
    }
}

extension Filter: CustomStringConvertible {
    /// The text encoding of CQL2.
    public var description: String { cql2Text }
}

/// How names and values are written.
private enum CQL2TextStyle {
    case whole
    /// As of ``Filter/shape``.
    case shape

    func text(_ literal: Literal) -> String { self == .shape ? "?" : literal.cql2Text }

    func text(_ literals: [Literal]) -> String {
        self == .shape ? "?" : literals.map(\.cql2Text).joined(separator: ", ")
    }

    func text(_ path: PropertyPath) -> String { self == .shape ? path.shape : path.cql2Text }
}

extension Literal {
    /// The literal in CQL2's text encoding.
    fileprivate var cql2Text: String {
        switch self {
        case .number(let number): return number.text
        case .boolean(let value): return value ? "TRUE" : "FALSE"
        case .string(let text):
            var bytes = [UInt8(ascii: "'")]
            /// How many backslashes are at the end of `bytes`; before a quote each of them is doubled.
            var backslashes = 0
            for byte in text.utf8 {
                if byte == UInt8(ascii: "'") {
                    bytes.append(contentsOf: repeatElement(UInt8(ascii: "\\"), count: backslashes))
                    bytes.append(byte)
                }
                backslashes = byte == UInt8(ascii: "\\") ? backslashes + 1 : 0
                bytes.append(byte)
            }
            bytes.append(contentsOf: repeatElement(UInt8(ascii: "\\"), count: backslashes))
            bytes.append(UInt8(ascii: "'"))
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension PropertyPath {
    /// As ``cql2Text``, of a long path its beginning.
    package var shape: String {
        let text = text
        guard text.utf8.count > Self.maximumShapeBytes else { return cql2Text }
        return Self.quoted(String(decoding: text.utf8.prefix(Self.maximumShapeBytes), as: UTF8.self)) + "…"
    }

    private static let maximumShapeBytes = 128

    /// The path in CQL2's text encoding: quoted unless it is an identifier and not a keyword.
    fileprivate var cql2Text: String {
        let text = text
        return CQL2Identifier.isIdentifier(text) && CQL2Keyword(text) == nil ? text : Self.quoted(text)
    }

    private static func quoted(_ text: String) -> String {
        var bytes = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") { bytes.append(byte) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }
}
