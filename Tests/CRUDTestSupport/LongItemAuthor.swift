/// Writes long items, and filters and orders that take as long with them as legal ones can: what repeats itself, has a
/// common beginning, escapes, many members or many digits, and patterns that nearly match everywhere.
package struct LongItemAuthor {
    private var random: QueryAuthor

    package init(seed: UInt64) { random = QueryAuthor(seed: seed) }

    private static let units = ["a", "ab", "aab", "é", "😀", "a_", "0"]
    private static let names = ["t", "u", "d.e", "d", "m7"]

    // MARK: Items

    /// An object of about so many bytes.
    package mutating func item(bytes: Int) -> String {
        let parts = 1 + random.number(below: 3)
        let members = (0..<parts).map { part in
            let value = value(bytes: bytes / parts)
            return part == 2 ? #""d":{"e":\#(value)}"# : #""\#(Self.names[part])":\#(value)"#
        }
        return "{\(members.joined(separator: ","))}"
    }

    private mutating func value(bytes: Int) -> String {
        let unit = random.pick(Self.units)
        func list(_ element: String) -> String {
            let element = element + ","
            return String(repeating: element, count: max(1, bytes / element.utf8.count)).dropLast() + ""
        }
        let run = String(repeating: unit, count: 1 + random.number(below: 400))
        switch random.number(below: 11) {
        case 0, 1: return "\"" + String(repeating: unit, count: bytes / unit.utf8.count) + "\""
        case 2: return "\"" + String(repeating: run + "b", count: max(1, bytes / run.utf8.count)) + "\""
        case 3: return "\"" + String(repeating: #"\u0061"#, count: bytes / 6) + "\""
        case 4: return "[" + list("\(random.number(below: 10))") + "]"
        case 5: return "[" + list("\"\(run)\"") + "]"
        case 6: return "[" + list(String(repeating: "[", count: 60) + String(repeating: "]", count: 60)) + "]"
        case 7: return "{" + (0..<max(1, bytes / 12)).map { #""m\#($0)":\#($0 % 7)"# }.joined(separator: ",") + "}"
        case 8: return "{" + list(#""e":"\#(unit)""#) + "}"
        case 9: return String(repeating: "9", count: max(1, bytes)) + random.pick(["", ".5", "e5", ".25e-400"])
        default: return "[" + list("1." + String(repeating: "3", count: 1 + random.number(below: 400))) + "]"
        }
    }

    // MARK: Filters

    /// A filter in CQL2's JSON encoding.
    package mutating func filter() -> String {
        let count = 1 + random.number(below: 150)
        let kind = random.number(below: 2) == 0 ? random.number(below: 7) : nil
        let conditions = (0..<count).map { _ in
            let condition = condition(kind ?? random.number(below: 7))
            return random.number(below: 8) == 0 ? #"{"op":"not","args":[\#(condition)]}"# : condition
        }
        guard count > 1 else { return conditions[0] }
        let operation = random.pick(["and", "or", "or", "or"])
        return #"{"op":"\#(operation)","args":[\#(conditions.joined(separator: ","))]}"#
    }

    private mutating func condition(_ kind: Int) -> String {
        let name = random.number(below: 2) == 0 ? "t" : random.pick(Self.names)
        func operation(_ name: String, _ property: String, _ arguments: String...) -> String {
            #"{"op":"\#(name)","args":[{"property":"\#(property)"}\#(arguments.map { "," + $0 }.joined())]}"#
        }
        let run = String(repeating: random.pick(Self.units), count: 1 + random.number(below: 200))
        switch kind {
        case 0...2: return operation("like", name, "\"\(pattern())\"")
        case 3:
            let literal = random.pick(["\"\(run)\"", "\"\(run)b\"", String(repeating: "9", count: 300), "1.25", "true"])
            return operation(random.pick(["=", "<>", "<", ">="]), name, literal)
        case 4: return operation("between", name, "\"\(run)\"", "\"\(run)b\"")
        case 5: return operation("in", name, literals(run))
        default: return operation("a_contains", name, literals(run))
        }
    }

    private mutating func literals(_ run: String) -> String {
        let count = 1 + random.number(below: 60)
        let strings = random.number(below: 2) == 0
        return "[" + (0..<count).map { strings ? "\"\(run)\($0)\"" : "\($0 + 10)" }.joined(separator: ",") + "]"
    }

    /// Up to 1024 bytes.
    private mutating func pattern() -> String {
        let pieces = ["a", "a", "%a", "_", "a_", "%_", "b", "é", "ab", "%aab"]
        let piece = random.pick(pieces)
        var pattern = String(repeating: piece, count: 1 + random.number(below: 1000 / piece.utf8.count))
        if random.number(below: 3) > 0 { pattern = "%\(pattern)" }
        if random.number(below: 3) > 0 { pattern += random.pick(["b%", "%", "_b%", "c"]) }
        return String(decoding: pattern.utf8.prefix(1020), as: UTF8.self).replacing("\u{FFFD}", with: "")
    }

    // MARK: Orders

    /// An order in the encoding of the protocol.
    package mutating func sort() -> String {
        let keys = Self.names.prefix(random.number(below: Self.names.count)).map { name in
            #"{"property":"\#(name)","order":"\#(random.pick(["asc", "desc"]))"}"#
        }
        return "[\(keys.joined(separator: ","))]"
    }
}
