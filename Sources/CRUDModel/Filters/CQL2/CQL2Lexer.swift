/// Splits CQL2's text encoding into tokens.
struct CQL2Lexer {
    private let text: [Unicode.Scalar]
    private var index = 0

    init(_ text: String) {
        self.text = Array(text.unicodeScalars)
    }

    /// An error at a column.
    static func error(_ message: String, at column: Int) -> CRUDError {
        CRUDError(.invalidQuery, "\(message) (column \(column))", details: .init(column: column))
    }

    /// The next token and the column at which it begins.
    mutating func next() throws(CRUDError) -> (token: CQL2Token, column: Int) {
        while let scalar = peek, scalar.properties.isWhitespace { index += 1 }
        let column = index + 1
        return (try token(at: column), column)
    }

    private var peek: Unicode.Scalar? { index < text.count ? text[index] : nil }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard peek == scalar else { return false }
        index += 1
        return true
    }

    private mutating func token(at column: Int) throws(CRUDError) -> CQL2Token {
        guard let scalar = peek else { return .end }
        switch scalar {
        case "'": return .string(try string(at: column))
        case "\"": return .quotedIdentifier(try quotedIdentifier(at: column))
        case "0"..."9", "+", "-", ".": return .number(try number(at: column))
        default: break
        }
        if CQL2Identifier.isStart(scalar) { return word() }
        index += 1
        switch scalar {
        case "(": return .leftParenthesis
        case ")": return .rightParenthesis
        case "[": return .leftBracket
        case "]": return .rightBracket
        case ",": return .comma
        case "=":
            if peek == "=" { throw Self.error("there is no operator ==; equal is =", at: column) }
            return .comparison(.equal)
        case "<": return .comparison(take("=") ? .lessOrEqual : take(">") ? .notEqual : .less)
        case ">": return .comparison(take("=") ? .greaterOrEqual : .greater)
        case "!":
            throw Self.error("there is no operator !; not equal is <>, and a condition is negated by NOT", at: column)
        default: throw Self.error("unexpected '\(scalar)'", at: column)
        }
    }

    private mutating func word() -> CQL2Token {
        let start = index
        while let scalar = peek, CQL2Identifier.isPart(scalar) { index += 1 }
        let word = string(start..<index)
        return CQL2Keyword(word).map { .keyword($0) } ?? .identifier(word)
    }

    private func string(_ range: Range<Int>) -> String {
        var string = String.UnicodeScalarView()
        string.append(contentsOf: text[range])
        return String(string)
    }

    // MARK: Quotes

    /// A string: `''` and `\'` are a quote, and before a quote `\\` is a backslash. Any other backslash is literal.
    private mutating func string(at column: Int) throws(CRUDError) -> String {
        var content = String.UnicodeScalarView()
        index += 1
        while let scalar = peek {
            index += 1
            if scalar == "'" {
                guard take("'") else { return String(content) }
            } else if scalar == "\\" {
                var backslashes = 1
                while take("\\") { backslashes += 1 }
                let isBeforeQuote = peek == "'"
                content.append(contentsOf: repeatElement("\\", count: isBeforeQuote ? backslashes / 2 : backslashes))
                guard isBeforeQuote, !backslashes.isMultiple(of: 2) else { continue }
                index += 1
                content.append("'")
                continue
            }
            content.append(scalar)
        }
        let hint = content.last == "'" ? #"; to end it with a backslash, write \\'"# : ""
        throw Self.error("this string has no end\(hint)", at: column)
    }

    private mutating func quotedIdentifier(at column: Int) throws(CRUDError) -> String {
        var content = String.UnicodeScalarView()
        index += 1
        while let scalar = peek {
            index += 1
            if scalar == "\"", !take("\"") { return String(content) }
            content.append(scalar)
        }
        throw Self.error("this quoted property has no end", at: column)
    }

    // MARK: Numbers

    /// A number. Unlike in JSON, it may have a plus sign, leading zeros, and no digits before or after its point.
    private mutating func number(at column: Int) throws(CRUDError) -> JSONNumber {
        var number = ""
        if take("-") { number = "-" } else { _ = take("+") }
        let integer = digits()
        var fraction = ""
        let hasPoint = take(".")
        if hasPoint { fraction = digits() }
        guard !integer.isEmpty || !fraction.isEmpty else { throw Self.error("this is not a number", at: column) }
        let significant = integer.drop { $0 == "0" }
        number += significant.isEmpty ? "0" : significant
        if !fraction.isEmpty { number += "." + fraction }
        if take("e") || take("E") {
            number += "e"
            if take("-") { number += "-" } else { _ = take("+") }
            let exponent = digits()
            guard !exponent.isEmpty else { throw Self.error("this number has no exponent", at: column) }
            number += exponent
        }
        if let scalar = peek, CQL2Identifier.isPart(scalar) { throw Self.error("this is not a number", at: column) }
        return JSONNumber(checked: number)
    }

    private mutating func digits() -> String {
        let start = index
        while let scalar = peek, "0"..."9" ~= scalar { index += 1 }
        return string(start..<index)
    }
}
