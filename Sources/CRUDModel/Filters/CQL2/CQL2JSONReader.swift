import CRUDJSON

/// Reads CQL2's JSON encoding in one pass. The operator of an operation may follow its arguments: these are parsed
/// first, and checked when the operator is known.
///
/// The recursion is bounded by the limit on operations.
struct CQL2JSONReader: ~Copyable {
    private var scanner = JSONScanner()
    private var limits = FilterLimits()

    /// A parsed argument, and where it begins.
    private struct Argument {
        enum Value {
            case filter(Filter)
            case property(PropertyPath)
            case literal(Literal)
            case list([Literal])
            case null
        }

        var value: Value
        var start: Int
    }

    mutating func read(_ text: Span<UInt8>) throws(CRUDError) -> Filter {
        do {
            let filter = try filter(try argument(text), text)
            guard scanner.isAtEnd(text) else { throw CRUDError(.invalidQuery, "there is text after the filter") }
            return filter
        } catch let error as CRUDError {
            throw error
        } catch let error as JSONSyntaxError {
            throw CRUDError(
                .invalidQuery, "the filter is not valid JSON: \(error.reason.rawValue) at byte \(error.offset)")
        } catch {
            throw CRUDError(.internalError, "\(error)")
        }
    }

    /// An error about the value that begins at `start`.
    private func error(_ message: String, _ start: Int, _ text: Span<UInt8>) -> CRUDError {
        var scanner = JSONScanner(at: start)
        let node = try? scanner.value(text)
        return CRUDError(.invalidQuery, message, details: .init(node: node.map { Self.string($0.range, text) }))
    }

    private static func string(_ range: Range<Int>, _ text: Span<UInt8>) -> String {
        String(decoding: range.map { text[$0] }, as: UTF8.self)
    }

    // MARK: Values

    private mutating func argument(_ text: Span<UInt8>) throws -> Argument {
        try limits.addArgument()
        let kind = try scanner.peekKind(text)
        let start = scanner.position
        switch kind {
        case .object: return Argument(value: try object(text), start: start)
        case .array:
            let literals = try elements(text) { reader, text in try reader.listed(text) }
            return Argument(value: .list(literals), start: start)
        case .null, .true, .false, .number, .string:
            let literal = Self.literal(try scanner.value(text), text)
            return Argument(value: literal.map { .literal($0) } ?? .null, start: start)
        }
    }

    /// Nil for values that are not literals.
    private static func literal(_ slice: JSONSlice, _ text: Span<UInt8>) -> Literal? {
        switch slice.kind {
        case .string: .string(String(decoding: slice.decodedString(text), as: UTF8.self))
        case .number: .number(JSONNumber(checked: string(slice.range, text)))
        case .true: .boolean(true)
        case .false: .boolean(false)
        case .null, .array, .object: nil
        }
    }

    private mutating func listed(_ text: Span<UInt8>) throws -> Literal {
        let value = try scanner.value(text)
        guard let literal = Self.literal(value, text) else {
            throw error("a list must contain strings, numbers and booleans only", value.start, text)
        }
        try limits.addValue()
        return literal
    }

    private mutating func elements<Element>(
        _ text: Span<UInt8>, _ element: (inout CQL2JSONReader, Span<UInt8>) throws -> Element
    ) throws -> [Element] {
        var elements: [Element] = []
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst) { elements.append(try element(&self, text)) }
        return elements
    }

    // MARK: Objects

    private mutating func object(_ text: Span<UInt8>) throws -> Argument.Value {
        let start = scanner.position
        var property: JSONSlice?
        var name: JSONSlice?
        var arguments: [Argument]?
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            let kind = try scanner.peekKind(text)
            if key.equals("op", text), kind == .string, name == nil {
                name = try scanner.value(text)
            } else if key.equals("args", text), kind == .array, arguments == nil {
                try limits.addNode()
                arguments = try elements(text) { reader, text in try reader.argument(text) }
            } else if key.equals("property", text), kind == .string, property == nil {
                property = try scanner.value(text)
            } else {
                let form = #"{"op": string, "args": array} or {"property": string}"#
                throw error("\(Self.string(key.range, text)) is unexpected here: expected \(form)", start, text)
            }
        }
        if let property, name == nil, arguments == nil {
            guard let path = PropertyPath(utf8: property.decodedString(text)) else {
                throw error("in a property path a backslash must precede . or another backslash", start, text)
            }
            return .property(path)
        }
        guard let name, let arguments, property == nil else {
            throw error(#"an operation has "op" and "args", a property has "property""#, start, text)
        }
        return .filter(try operation(name, arguments, start, text))
    }

    private mutating func filter(_ argument: Argument, _ text: Span<UInt8>) throws -> Filter {
        switch argument.value {
        case .filter(let filter): return filter
        case .literal(.boolean(let value)):
            try limits.addNode()
            return .constant(value)
        case .property:
            throw error("a property alone is not a condition; compare it with true", argument.start, text)
        case .literal, .list, .null: throw error("this is not a condition", argument.start, text)
        }
    }

    // MARK: Operations

    private mutating func operation(
        _ name: JSONSlice, _ arguments: [Argument], _ start: Int, _ text: Span<UInt8>
    ) throws -> Filter {
        let operation = String(decoding: name.decodedString(text), as: UTF8.self)
        switch operation {
        case "and", "or":
            guard arguments.count >= 2 else { throw error("\(operation) takes two conditions or more", start, text) }
            var filters: [Filter] = []
            for argument in arguments { filters.append(try filter(argument, text)) }
            return operation == "and" ? .and(filters) : .or(filters)
        case "not":
            try check(arguments, 1, "\(operation) takes one condition", start, text)
            return .not(try filter(arguments[0], text))
        case "like":
            try check(arguments, 2, "\(operation) takes a property and a pattern", start, text)
            return .like(try property(arguments[0], text), pattern: try pattern(arguments[1], text))
        case "between":
            try check(arguments, 3, "\(operation) takes a property and two literals", start, text)
            return .between(
                try property(arguments[0], text), try literal(arguments[1], text), try literal(arguments[2], text))
        case "in":
            try check(arguments, 2, "\(operation) takes a property and a list of literals", start, text)
            return .isIn(try property(arguments[0], text), try list(arguments[1], text))
        case "isNull":
            try check(arguments, 1, "\(operation) takes one property", start, text)
            return .isNull(try property(arguments[0], text))
        case "a_contains":
            try check(arguments, 2, "\(operation) takes a property and a list of literals", start, text)
            return .arrayContains(try property(arguments[0], text), try list(arguments[1], text))
        default:
            guard let comparison = Comparison(rawValue: operation) else {
                let hint = operation == "!=" ? "; not equal is <>" : operation == "==" ? "; equal is =" : ""
                throw error("there is no operator \(operation)\(hint)", start, text)
            }
            try check(arguments, 2, "\(operation) takes a property and a literal", start, text)
            let path = try property(arguments[0], text)
            return .comparison(comparison, path, try literal(arguments[1], text))
        }
    }

    private func check(
        _ arguments: [Argument], _ count: Int, _ message: String, _ start: Int, _ text: Span<UInt8>
    ) throws {
        if arguments.count != count { throw error(message, start, text) }
    }

    private func property(_ argument: Argument, _ text: Span<UInt8>) throws -> PropertyPath {
        if case .property(let path) = argument.value { return path }
        throw error(#"the first argument must be a property, {"property": "name"}"#, argument.start, text)
    }

    private func literal(_ argument: Argument, _ text: Span<UInt8>) throws -> Literal {
        switch argument.value {
        case .literal(let literal): return literal
        case .null: throw error("null cannot be compared; use isNull", argument.start, text)
        case .property: throw error("a property must be compared with a literal", argument.start, text)
        case .filter, .list: throw error("this is not a string, number or boolean", argument.start, text)
        }
    }

    private func list(_ argument: Argument, _ text: Span<UInt8>) throws -> [Literal] {
        if case .list(let literals) = argument.value { return literals }
        throw error("the second argument must be a list of literals", argument.start, text)
    }

    private func pattern(_ argument: Argument, _ text: Span<UInt8>) throws -> String {
        guard case .literal(.string(let pattern)) = argument.value else {
            throw error("a pattern must be a string", argument.start, text)
        }
        try FilterLimits.check(pattern: pattern)
        guard LikePattern(pattern.utf8) != nil else { throw error(LikePattern.syntaxError, argument.start, text) }
        return pattern
    }
}
