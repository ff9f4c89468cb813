package import CRUDJSON

/// A filter compiled for the evaluation of many items.
///
/// An item's bytes are scanned once, to find the properties that the filter uses (``PropertyFinder``); then the
/// conditions are evaluated on those bytes. No tree of the item is built, and nothing is allocated unless a string has
/// escapes. The logic is SQL's: a condition is true, false or, if a property is missing, null or of another type,
/// unknown.
///
/// One evaluator serves one thread at a time.
package struct FilterEvaluator: ~Copyable {
    private indirect enum Condition {
        case constant(Bool)
        case all([Condition])
        case any([Condition])
        case not(Condition)
        /// The first value is the property's index in the finder, here and below.
        case string(Int, Comparison, [UInt8])
        case number(Int, Comparison, ExactNumber)
        case boolean(Int, Comparison, Bool)
        case like(Int, LikePattern)
        case isIn(Int, LiteralSet)
        case isNull(Int)
        case arrayContains(Int, LiteralSet)
    }

    private let condition: Condition
    /// Whether the result depends on the item; that of a filter without properties does not.
    package let needsItem: Bool
    private var finder: PropertyFinder

    /// - Throws: `invalidQuery` for a pattern of `like` in which a backslash precedes anything but `%`, `_` and `\`.
    package init(_ filter: Filter) throws(CRUDError) {
        var compiler = Compiler()
        condition = try compiler.condition(filter)
        needsItem = !compiler.paths.isEmpty
        finder = PropertyFinder(compiler.paths)
    }

    /// Whether the filter selects an item: false if the condition is unknown.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON.
    package mutating func matches(_ item: Span<UInt8>) throws(JSONSyntaxError) -> Bool {
        try evaluate(item) ?? false
    }

    /// The value of the condition for an item; nil for unknown.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON.
    package mutating func evaluate(_ item: Span<UInt8>) throws(JSONSyntaxError) -> Bool? {
        if needsItem { try finder.find(in: item) }
        return try evaluate(condition, item)
    }

    // MARK: Conditions

    private func evaluate(_ condition: Condition, _ item: Span<UInt8>) throws(JSONSyntaxError) -> Bool? {
        switch condition {
        case .constant(let value): return value
        case .all(let conditions): return try combine(conditions, item, decidedBy: false)
        case .any(let conditions): return try combine(conditions, item, decidedBy: true)
        case .not(let condition): return try evaluate(condition, item).map { !$0 }
        case .string(let path, let comparison, let literal):
            let value = finder[path]
            guard value.kind == .string else { return nil }
            return comparison.holds(compare(value, item, with: literal))
        case .number(let path, let comparison, let literal):
            let value = finder[path]
            guard value.kind == .number else { return nil }
            let number = ExactNumber(value, item)
            return comparison.holds(number == literal ? 0 : number < literal ? -1 : 1)
        case .boolean(let path, let comparison, let literal):
            let value = finder[path]
            guard value.kind == .true || value.kind == .false else { return nil }
            return comparison.holds((value.kind == .true ? 1 : 0) - (literal ? 1 : 0))
        case .like(let path, let pattern): return matches(finder[path], pattern, item)
        case .isIn(let path, let literals): return isIn(finder[path], literals, item)
        case .isNull(let path): return finder[path].kind == .null
        case .arrayContains(let path, let literals): return try contains(finder[path], literals, item)
        }
    }

    /// `and` (decided by false) and `or` (decided by true): the decisive value if one condition has it, else unknown if
    /// one is unknown, else the opposite.
    private func combine(
        _ conditions: [Condition], _ item: Span<UInt8>, decidedBy decisive: Bool
    ) throws(JSONSyntaxError) -> Bool? {
        var result: Bool? = !decisive
        for condition in conditions {
            let value = try evaluate(condition, item)
            if value == decisive { return decisive }
            if value == nil { result = nil }
        }
        return result
    }

    private func matches(_ value: JSONSlice, _ pattern: LikePattern, _ item: Span<UInt8>) -> Bool? {
        guard value.kind == .string else { return nil }
        guard value.hasEscapes else { return pattern.matches(item, value.content) }
        let text = value.decodedString(item)
        return pattern.matches(text.span, 0..<text.count)
    }

    /// `=` joined by `or`: true if one is equal, else unknown if a literal has another type.
    private func isIn(_ value: JSONSlice, _ literals: LiteralSet, _ item: Span<UInt8>) -> Bool? {
        if literals.count == 0 { return false }
        switch value.kind {
        case .null, .array, .object: return nil
        case .string, .number, .true, .false:
            if literals.index(of: value, item) != nil { return true }
            return literals.isOnly(value.kind) ? false : nil
        }
    }

    private func contains(
        _ value: JSONSlice, _ literals: LiteralSet, _ item: Span<UInt8>
    ) throws(JSONSyntaxError) -> Bool? {
        guard value.kind == .array else { return nil }
        var isFound = [Bool](repeating: false, count: literals.count)
        var missing = literals.count
        var scanner = JSONScanner(at: value.start)
        _ = try scanner.peekKind(item)
        scanner.enter()
        var isFirst = true
        while missing > 0, try scanner.nextElement(item, isFirst: &isFirst) {
            let element = try scanner.value(item)
            guard let index = literals.index(of: element, item), !isFound[index] else { continue }
            isFound[index] = true
            missing -= 1
        }
        return missing == 0
    }

    // MARK: Compiling

    private struct Compiler {
        var paths: [PropertyPath] = []
        private var indexes: [PropertyPath: Int] = [:]

        mutating func condition(_ filter: Filter) throws(CRUDError) -> Condition {
            switch filter {
            case .constant(let value): return .constant(value)
            case .and(let filters): return .all(try conditions(filters))
            case .or(let filters): return .any(try conditions(filters))
            case .not(let filter): return .not(try condition(filter))
            case .comparison(let comparison, let path, let literal): return compare(path, comparison, literal)
            case .like(let path, let text):
                guard let pattern = LikePattern(text.utf8) else {
                    throw CRUDError(.invalidQuery, LikePattern.syntaxError, details: .init(node: filter.cql2JSON))
                }
                return .like(index(path), pattern)
            case .between(let path, let low, let high):
                return .all([compare(path, .greaterOrEqual, low), compare(path, .lessOrEqual, high)])
            case .isIn(let path, let literals): return .isIn(index(path), LiteralSet(literals))
            case .isNull(let path): return .isNull(index(path))
            case .arrayContains(let path, let literals): return .arrayContains(index(path), LiteralSet(literals))
            }
        }

        private mutating func conditions(_ filters: [Filter]) throws(CRUDError) -> [Condition] {
            var conditions: [Condition] = []
            for filter in filters { conditions.append(try condition(filter)) }
            return conditions
        }

        private mutating func compare(
            _ path: PropertyPath, _ comparison: Comparison, _ literal: Literal
        ) -> Condition {
            switch literal {
            case .string(let text): .string(index(path), comparison, Array(text.utf8))
            case .number(let number): .number(index(path), comparison, ExactNumber(number))
            case .boolean(let value): .boolean(index(path), comparison, value)
            }
        }

        private mutating func index(_ path: PropertyPath) -> Int {
            if let index = indexes[path] { return index }
            indexes[path] = paths.count
            paths.append(path)
            return paths.count - 1
        }
    }
}

extension LikePattern {
    static let syntaxError = #"in a pattern a backslash must precede %, _ or another backslash"#
}

extension Comparison {
    /// Whether it is true for a value that is less than (below 0), equal to (0) or greater than (above 0) the literal.
    fileprivate func holds(_ order: Int) -> Bool {
        switch self {
        case .equal: order == 0
        case .notEqual: order != 0
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        }
    }
}
