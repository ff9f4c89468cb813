/// Filters as section 4 of the protocol reads, word by word, over an item that has been taken apart: slow, and with
/// nothing in common with what it is to test.
package struct ReferenceEvaluator {
    private let filter: JSON

    package init(_ filter: JSON) {
        self.filter = filter
    }

    package func evaluate(_ item: JSON) -> Bool? {
        evaluate(filter, item)
    }

    private func evaluate(_ node: JSON, _ item: JSON) -> Bool? {
        if let value = node.boolean { return value }
        let arguments = node["args"]?.elements ?? []
        switch node["op"]?.string ?? "" {
        case "and":
            let values = arguments.map { evaluate($0, item) }
            return values.contains(false) ? false : values.contains(nil) ? nil : true
        case "or":
            let values = arguments.map { evaluate($0, item) }
            return values.contains(true) ? true : values.contains(nil) ? nil : false
        case "not": return evaluate(arguments[0], item).map { !$0 }
        case "isNull": return value(arguments[0], item)?.isNull ?? true
        case "like":
            guard let text = value(arguments[0], item)?.string, let pattern = arguments[1].string else { return nil }
            return isLike(Array(text.unicodeScalars)[...], Array(pattern.unicodeScalars)[...])
        case "between":
            let comparisons = [
                compare(value(arguments[0], item), arguments[1]), compare(value(arguments[0], item), arguments[2]),
            ]
            let values = [comparisons[0].map { $0 >= 0 }, comparisons[1].map { $0 <= 0 }]
            return values.contains(false) ? false : values.contains(nil) ? nil : true
        case "in":
            let values = (arguments[1].elements ?? []).map { compare(value(arguments[0], item), $0).map { $0 == 0 } }
            return values.contains(true) ? true : values.contains(nil) ? nil : false
        case "a_contains":
            guard let members = value(arguments[0], item)?.elements else { return nil }
            return (arguments[1].elements ?? []).allSatisfy { element in
                members.contains { compare($0, element) == 0 }
            }
        case let comparison:
            guard let order = compare(value(arguments[0], item), arguments[1]) else { return nil }
            switch comparison {
            case "=": return order == 0
            case "<>": return order != 0
            case "<": return order < 0
            case "<=": return order <= 0
            case ">": return order > 0
            default: return order >= 0
            }
        }
    }

    private func value(_ property: JSON, _ item: JSON) -> JSON? {
        ReferenceEvaluator.value(property["property"]?.string ?? "", item)
    }

    /// What stands at a dotted path; nil if nothing does.
    package static func value(_ path: String, _ item: JSON) -> JSON? {
        var names = [String.UnicodeScalarView()]
        var isEscaped = false
        for scalar in path.unicodeScalars {
            if !isEscaped, scalar == "." {
                names.append(String.UnicodeScalarView())
            } else if !isEscaped, scalar == "\\" {
                isEscaped = true
            } else {
                names[names.count - 1].append(scalar)
                isEscaped = false
            }
        }
        var value: JSON? = item
        for name in names { value = value?[String(name)] }
        return value
    }

    /// Below 0, 0 or above; nil for unknown.
    private func compare(_ value: JSON?, _ literal: JSON) -> Int? {
        guard let value else { return nil }
        switch (value.content, literal.content) {
        case (.string(let left), .string(let right)): return Self.compare(left, right)
        case (.boolean(let left), .boolean(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
        case (.number, .number): return Self.compare(number: value.text, literal.text)
        default: return nil
        }
    }

    package static func compare(_ left: String, _ right: String) -> Int {
        let (left, right) = (left.unicodeScalars.map(\.value), right.unicodeScalars.map(\.value))
        return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
    }

    /// An x87 long double holds every Int64 and every binary64.
    package static func compare(number left: String, _ right: String) -> Int {
        let (left, right) = (extended(left), extended(right))
        return left == right ? 0 : left < right ? -1 : 1
    }

    private static func extended(_ text: String) -> Float80 {
        if let integer = Int64(text) { return Float80(integer) }
        return Float80(Double(text) ?? .nan)
    }

    private func isLike(_ text: ArraySlice<Unicode.Scalar>, _ pattern: ArraySlice<Unicode.Scalar>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        switch first {
        case "%":
            return (text.startIndex...text.endIndex).contains { isLike(text[$0...], pattern.dropFirst()) }
        case "_": return !text.isEmpty && isLike(text.dropFirst(), pattern.dropFirst())
        case "\\":
            return text.first == pattern.dropFirst().first && isLike(text.dropFirst(), pattern.dropFirst(2))
        default: return text.first == first && isLike(text.dropFirst(), pattern.dropFirst())
        }
    }
}
