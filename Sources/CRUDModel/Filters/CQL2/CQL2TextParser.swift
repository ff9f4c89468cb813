/// Parses CQL2's text encoding by recursive descent: a disjunction of conjunctions of conditions, which NOT may
/// precede.
struct CQL2TextParser {
    private var lexer: CQL2Lexer
    private var token: CQL2Token
    private var column: Int
    private var limits = FilterLimits()
    private var depth = 0

    /// How deeply parentheses and NOTs may nest; deeper than the daemon allows by default.
    private static let maximumDepth = 200

    init(_ text: String) throws(CRUDError) {
        lexer = CQL2Lexer(text)
        (token, column) = try lexer.next()
    }

    mutating func parse() throws(CRUDError) -> Filter {
        if case .end = token { throw error("the filter is empty") }
        let filter = try disjunction()
        guard case .end = token else { throw error("expected AND, OR or the end of the filter") }
        return filter
    }

    private func error(_ message: String) -> CRUDError {
        CQL2Lexer.error(message, at: column)
    }

    // MARK: Tokens

    private mutating func advance() throws(CRUDError) {
        (token, column) = try lexer.next()
    }

    private mutating func take(_ keyword: CQL2Keyword) throws(CRUDError) -> Bool {
        guard case .keyword(keyword) = token else { return false }
        try advance()
        return true
    }

    private mutating func expect(_ keyword: CQL2Keyword, _ message: String) throws(CRUDError) {
        guard try take(keyword) else { throw error(message) }
    }

    // MARK: Logic

    private mutating func disjunction() throws(CRUDError) -> Filter {
        let first = try conjunction()
        guard case .keyword(.or) = token else { return first }
        try limits.addNode()
        var filters = [first]
        while try take(.or) { filters.append(try conjunction()) }
        return .or(filters)
    }

    private mutating func conjunction() throws(CRUDError) -> Filter {
        let first = try negation()
        guard case .keyword(.and) = token else { return first }
        try limits.addNode()
        var filters = [first]
        while try take(.and) { filters.append(try negation()) }
        return .and(filters)
    }

    private mutating func negation() throws(CRUDError) -> Filter {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.maximumDepth else { throw error("the filter nests too deeply") }
        guard try take(.not) else { return try condition() }
        try limits.addNode()
        return .not(try negation())
    }

    private mutating func condition() throws(CRUDError) -> Filter {
        let (first, start) = (token, column)
        if let path = try property() {
            guard case .leftParenthesis = token, case .identifier(let name) = first else { return try predicate(path) }
            return try function(name, at: start)
        }
        switch token {
        case .leftParenthesis:
            try advance()
            let filter = try disjunction()
            guard case .rightParenthesis = token else { throw error("expected AND, OR or )") }
            try advance()
            return filter
        case .keyword(.true), .keyword(.false):
            try limits.addNode()
            if try take(.true) { return .constant(true) }
            try advance()
            return .constant(false)
        case .string, .number: throw error("the property must be on the left of a comparison")
        case .end: throw error("the filter ends where a condition is expected")
        default: throw error("expected a condition, such as name = 'x'")
        }
    }

    /// The property, if that is the next token.
    private mutating func property() throws(CRUDError) -> PropertyPath? {
        switch token {
        case .identifier(let text), .quotedIdentifier(let text):
            guard let path = PropertyPath(text: text) else {
                throw error("in a property a backslash must precede . or another backslash")
            }
            try advance()
            return path
        default: return nil
        }
    }

    /// The only function, A_CONTAINS.
    private mutating func function(_ name: String, at start: Int) throws(CRUDError) -> Filter {
        guard name.utf8.elementsEqual("A_CONTAINS".utf8, by: { $0 & 0xDF == $1 & 0xDF }) else {
            throw CQL2Lexer.error("there is no function \(name); A_CONTAINS is the only one", at: start)
        }
        try limits.addNode()
        try advance()
        guard let path = try property() else {
            throw error("A_CONTAINS takes a property and a list, as in A_CONTAINS(tags, ('a', 'b'))")
        }
        guard case .comma = token else {
            throw error("expected a comma and a list, as in A_CONTAINS(tags, ('a', 'b'))")
        }
        try advance()
        let literals = try array()
        guard case .rightParenthesis = token else { throw error("expected )") }
        try advance()
        return .arrayContains(path, literals)
    }

    /// A list as an array. Brackets are those of earlier drafts of CQL2.
    private mutating func array() throws(CRUDError) -> [Literal] {
        guard case .leftBracket = token else { return try list() }
        try advance()
        var isEnd = false
        if case .rightBracket = token { isEnd = true }
        let literals = isEnd ? [] : try literals()
        guard case .rightBracket = token else { throw error("expected a comma or ]") }
        try advance()
        return literals
    }

    // MARK: Predicates

    private mutating func predicate(_ path: PropertyPath) throws(CRUDError) -> Filter {
        if case .comparison(let comparison) = token {
            try limits.addNode()
            try advance()
            return .comparison(comparison, path, try literal())
        }
        if try take(.is) {
            let isNegated = try take(.not)
            try expect(.null, "expected NULL")
            return try negated(isNegated, .isNull(path))
        }
        let isNegated = try take(.not)
        if try take(.like) { return try negated(isNegated, .like(path, pattern: try pattern())) }
        if try take(.between) {
            let low = try literal()
            try expect(.and, "expected AND and the upper bound")
            return try negated(isNegated, .between(path, low, try literal()))
        }
        if try take(.in) { return try negated(isNegated, .isIn(path, try list())) }
        if isNegated { throw error("expected LIKE, BETWEEN or IN") }
        if case .leftParenthesis = token { throw error("a quoted name is a property, not a function") }
        throw error("a property alone is not a condition; expected =, <>, <, <=, >, >=, LIKE, BETWEEN, IN or IS NULL")
    }

    private mutating func negated(_ isNegated: Bool, _ filter: Filter) throws(CRUDError) -> Filter {
        try limits.addNode()
        guard isNegated else { return filter }
        try limits.addNode()
        return .not(filter)
    }

    private mutating func pattern() throws(CRUDError) -> String {
        let start = column
        guard case .string(let pattern) = token else { throw error("expected a pattern in single quotes") }
        try FilterLimits.check(pattern: pattern)
        guard LikePattern(pattern.utf8) != nil else { throw CQL2Lexer.error(LikePattern.syntaxError, at: start) }
        try advance()
        return pattern
    }

    private mutating func list() throws(CRUDError) -> [Literal] {
        guard case .leftParenthesis = token else { throw error("expected a list in parentheses, such as ('a', 'b')") }
        try advance()
        var isEnd = false
        if case .rightParenthesis = token { isEnd = true }
        let literals = isEnd ? [] : try literals()
        guard case .rightParenthesis = token else { throw error("expected a comma or )") }
        try advance()
        return literals
    }

    private mutating func literals() throws(CRUDError) -> [Literal] {
        var literals = [try literal()]
        try limits.addValue()
        while case .comma = token {
            try advance()
            try limits.addValue()
            literals.append(try literal())
        }
        return literals
    }

    private mutating func literal() throws(CRUDError) -> Literal {
        let literal: Literal
        switch token {
        case .string(let text): literal = .string(text)
        case .number(let number): literal = .number(number)
        case .keyword(.true): literal = .boolean(true)
        case .keyword(.false): literal = .boolean(false)
        case .keyword(.null): throw error("NULL cannot be compared; use IS NULL")
        case .identifier(let name):
            throw error("a property must be compared with a literal; text is written in single quotes: '\(name)'")
        case .quotedIdentifier(let name):
            throw error("double quotes are for properties; text is written in single quotes: '\(name)'")
        case .end: throw error("the filter ends where a literal is expected")
        default: throw error("expected a string in single quotes, a number, TRUE or FALSE")
        }
        try advance()
        return literal
    }
}
