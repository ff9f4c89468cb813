/// A condition of a compiled filter. Properties are their indexes in the evaluator's finder.
indirect enum FilterCondition {
    case constant(Bool)
    case all([FilterCondition])
    case any([FilterCondition])
    case not(FilterCondition)
    case string(Int, Comparison, [UInt8])
    case number(Int, Comparison, ExactNumber)
    case boolean(Int, Comparison, Bool)
    case like(Int, LikePattern)
    case isIn(Int, LiteralSet)
    case isNull(Int)
    /// The elements that the array must have are their indexes in the set of the property.
    case arrayContains(Int, [Int])
}

/// Makes conditions of a filter.
struct FilterCompiler {
    /// The properties, by the order in which they were met.
    private(set) var paths: [PropertyPath] = []
    /// For each property that an `a_contains` is about: all elements that any of them asks for.
    private(set) var elements: [Int: LiteralSet] = [:]
    /// How many patterns there are.
    private(set) var patterns = 0
    private var indexes: [PropertyPath: Int] = [:]

    init(_ filter: Filter) {
        var literals: [PropertyPath: [Literal]] = [:]
        Self.gather(filter, into: &literals)
        for (path, literals) in literals { elements[index(path)] = LiteralSet(literals) }
    }

    private static func gather(_ filter: Filter, into literals: inout [PropertyPath: [Literal]]) {
        switch filter {
        case .and(let filters), .or(let filters): for filter in filters { gather(filter, into: &literals) }
        case .not(let filter): gather(filter, into: &literals)
        case .arrayContains(let path, let wanted): literals[path, default: []] += wanted
        case .constant, .comparison, .like, .between, .isIn, .isNull: break
        }
    }

    /// - Throws: `invalidQuery` or `limitExceeded` for a pattern.
    mutating func condition(_ filter: Filter) throws(CRUDError) -> FilterCondition {
        switch filter {
        case .constant(let value): return .constant(value)
        case .and(let filters): return .all(try conditions(filters))
        case .or(let filters): return .any(try conditions(filters))
        case .not(let filter): return .not(try condition(filter))
        case .comparison(let comparison, let path, let literal): return compare(path, comparison, literal)
        case .like(let path, let text):
            try FilterLimits.check(pattern: text)
            guard let pattern = LikePattern(text.utf8) else {
                throw CRUDError(.invalidQuery, LikePattern.syntaxError, details: .init(node: filter.cql2JSON))
            }
            patterns += 1
            return .like(index(path), pattern)
        case .between(let path, let low, let high):
            return .all([compare(path, .greaterOrEqual, low), compare(path, .lessOrEqual, high)])
        case .isIn(let path, let literals): return .isIn(index(path), LiteralSet(literals))
        case .isNull(let path): return .isNull(index(path))
        case .arrayContains(let path, let literals):
            let index = index(path)
            return .arrayContains(index, literals.compactMap { elements[index]?.index(of: $0) })
        }
    }

    private mutating func conditions(_ filters: [Filter]) throws(CRUDError) -> [FilterCondition] {
        var conditions: [FilterCondition] = []
        for filter in filters { conditions.append(try condition(filter)) }
        return conditions
    }

    private mutating func compare(
        _ path: PropertyPath, _ comparison: Comparison, _ literal: Literal
    ) -> FilterCondition {
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

extension LikePattern {
    static let syntaxError = #"in a pattern a backslash must precede %, _ or another backslash"#
}
