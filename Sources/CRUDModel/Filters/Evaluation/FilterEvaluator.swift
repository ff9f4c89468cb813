package import CRUDJSON

/// A filter compiled for the evaluation of many items.
///
/// An item's bytes are scanned once, to find the properties that the filter uses (``PropertyFinder``); then the
/// conditions are evaluated on those bytes. No tree of the item is built, and nothing is allocated unless a string has
/// escapes. The logic is SQL's: a condition is true, false or, if a property is missing, null or of another type,
/// unknown.
///
/// What takes long is done once for an item, however many conditions need it (``PropertyValues``); of the others each
/// `like` takes time that is linear in its text. The evaluation stops where its ``work`` does.
///
/// One evaluator serves one thread at a time.
package struct FilterEvaluator: ~Copyable {
    /// In a condition, the first value is the property's index in the finder.
    private let condition: FilterCondition
    /// Whether the result depends on the item; that of a filter without properties does not.
    package let needsItem: Bool
    /// How often an item may be looked at: once, and once for each `like`.
    package let passes: Int
    private var finder: PropertyFinder
    private var values: PropertyValues
    /// The work of the evaluations so far. Where it is stopped, the result of the evaluation means nothing.
    package var work = Work()

    /// - Throws: `invalidQuery` for a pattern of `like` in which a backslash precedes anything but `%`, `_` and `\`,
    ///   `limitExceeded` for one that is too long.
    package init(_ filter: Filter) throws(CRUDError) {
        var compiler = FilterCompiler(filter)
        condition = try compiler.condition(filter)
        needsItem = !compiler.paths.isEmpty
        passes = 1 + compiler.patterns
        finder = PropertyFinder(compiler.paths)
        values = PropertyValues(compiler.elements)
    }

    /// Whether the filter selects an item: false if the condition is unknown.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON, or the ``work`` has been stopped.
    package mutating func matches(_ item: Span<UInt8>) throws(JSONSyntaxError) -> Bool {
        try evaluate(item) ?? false
    }

    /// The value of the condition for an item; nil for unknown.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON, or the ``work`` has been stopped.
    package mutating func evaluate(_ item: Span<UInt8>) throws(JSONSyntaxError) -> Bool? {
        if needsItem {
            values.removeAll()
            try finder.find(in: item, &work)
        }
        return try evaluate(condition, item)
    }

    // MARK: Conditions

    /// About what a condition costs that needs few bytes of the item.
    private static let conditionWork = 16

    private mutating func evaluate(
        _ condition: FilterCondition, _ item: Span<UInt8>
    ) throws(JSONSyntaxError) -> Bool? {
        guard work.take(Self.conditionWork) else { return nil }
        switch condition {
        case .constant(let value): return value
        case .all(let conditions): return try combine(conditions, item, decidedBy: false)
        case .any(let conditions): return try combine(conditions, item, decidedBy: true)
        case .not(let condition): return try evaluate(condition, item).map { !$0 }
        case .string(let path, let comparison, let literal):
            let value = finder[path]
            guard value.kind == .string else { return nil }
            guard value.hasEscapes else { return comparison.holds(compare(value.content, item, with: literal, &work)) }
            let text = values.text(of: path, value, item, &work)
            return comparison.holds(compare(0..<text.count, text.span, with: literal, &work))
        case .number(let path, let comparison, let literal):
            let value = finder[path]
            guard value.kind == .number else { return nil }
            let number = values.number(of: path, value, item, &work)
            return comparison.holds(number == literal ? 0 : number < literal ? -1 : 1)
        case .boolean(let path, let comparison, let literal):
            let value = finder[path]
            guard value.kind == .true || value.kind == .false else { return nil }
            return comparison.holds((value.kind == .true ? 1 : 0) - (literal ? 1 : 0))
        case .like(let path, let pattern): return matches(path, pattern, item)
        case .isIn(let path, let literals): return isIn(path, literals, item)
        case .isNull(let path): return finder[path].kind == .null
        case .arrayContains(let path, let wanted):
            guard finder[path].kind == .array else { return nil }
            let found = try values.elements(of: path, finder[path], item, &work)
            return wanted.allSatisfy { found[$0] }
        }
    }

    /// `and` (decided by false) and `or` (decided by true): the decisive value if one condition has it, else unknown if
    /// one is unknown, else the opposite.
    private mutating func combine(
        _ conditions: [FilterCondition], _ item: Span<UInt8>, decidedBy decisive: Bool
    ) throws(JSONSyntaxError) -> Bool? {
        var result: Bool? = !decisive
        for condition in conditions {
            let value = try evaluate(condition, item)
            if value == decisive { return decisive }
            if value == nil { result = nil }
            if work.isStopped { return nil }
        }
        return result
    }

    private mutating func matches(_ path: Int, _ pattern: LikePattern, _ item: Span<UInt8>) -> Bool? {
        let value = finder[path]
        guard value.kind == .string else { return nil }
        guard value.hasEscapes else { return pattern.matches(item, value.content, &work) }
        let text = values.text(of: path, value, item, &work)
        return pattern.matches(text.span, 0..<text.count, &work)
    }

    /// `=` joined by `or`: true if one is equal, else unknown if a literal has another type.
    private mutating func isIn(_ path: Int, _ literals: LiteralSet, _ item: Span<UInt8>) -> Bool? {
        if literals.count == 0 { return false }
        let value = finder[path]
        let isFound: Bool
        switch value.kind {
        case .null, .array, .object: return nil
        case .string where value.hasEscapes:
            let text = values.text(of: path, value, item, &work)
            isFound = literals.index(of: 0..<text.count, text.span, &work) != nil
        case .string: isFound = literals.index(of: value.content, item, &work) != nil
        case .number: isFound = literals.index(of: values.number(of: path, value, item, &work)) != nil
        case .true, .false: isFound = literals.index(of: value.kind == .true) != nil
        }
        return isFound ? true : literals.isOnly(value.kind) ? false : nil
    }
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
