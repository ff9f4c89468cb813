/// Writes random items and filters with cases that are easily implemented wrongly: similar names and values, numbers at
/// the limits of 64 bits and binary64, text beyond ASCII, escapes, missing members and nulls, types that differ from
/// item to item.
///
/// It writes JSON text by itself, without any code that it is used to test.
package struct QueryAuthor {
    private var state: UInt64
    /// Whether items may have repeated members, and names with unnecessary escapes.
    private let isUntidy: Bool

    package init(seed: UInt64, isUntidy: Bool = false) {
        state = seed
        self.isUntidy = isUntidy
    }

    // MARK: Random numbers

    /// SplitMix64.
    package mutating func number(below bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((bits ^ bits >> 31) % UInt64(bound))
    }

    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[number(below: elements.count)]
    }

    private mutating func list(_ maximum: Int, _ element: (inout QueryAuthor) -> String) -> String {
        (0..<number(below: maximum + 1)).map { _ in element(&self) }.joined(separator: ",")
    }

    // MARK: Samples

    private static let names = [
        "a", "b", "c", "ab", "A", "é", "e\u{301}", "x.y", "", "in", "a b", "quo\"te", "back\\slash", "new\nline",
        "tags", "$", "[0]",
        "0", "😀",
    ]
    private static let numbers = [
        "0", "-0", "-0.0", "1", "1.0", "10e-1", "2", "-1", "0.1", "0.10", "0.30000000000000004", "0.3", "1e-400",
        "5e-324",
        "9007199254740991", "9007199254740992", "9007199254740993", "9007199254740992.0", "9007199254740993.0",
        "9223372036854775807", "9223372036854775807.0", "9223372036854775808", "9223372036854775806",
        "-9223372036854775808", "-9223372036854775809", "-9.223372036854775808e18", "18446744073709551615", "1e19",
        "123456789012345678901234567890", "1.7976931348623157e308", "1e400", "-1e400", "2e400", "1.00000000000000011",
        "1.0000000000000002", "4.9406564584124654e-324", "8.41e21", "9.5367431640625e-7", "100", "1e2", "2.5",
    ]
    private static let strings = [
        "", "a", "b", "B", "Bonn", "Bo", "Bonnn", "é", "e\u{301}", "\u{FFFD}", "😀", "\u{E000}", "%", "_", "\\",
        "a\u{0}b", "a\u{0}",
        "it's", "null", "1", "true", "a\"b", "line\nbreak", "\u{7F}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ab%", "a_b",
        "\u{1F}",
    ]

    // MARK: Items

    /// A JSON string with random escapes.
    private mutating func string(_ value: String, isName: Bool = false) -> String {
        guard number(below: 6) == 0, !isName || isUntidy, let scalar = value.unicodeScalars.first, scalar.value < 0x80
        else {
            return JSON.quote(value)
        }
        let digits = String(scalar.value, radix: 16)
        let escape = "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        return "\"" + escape
            + JSON.quote(String(String.UnicodeScalarView(value.unicodeScalars.dropFirst()))).dropFirst()
    }

    private mutating func scalar() -> String {
        switch number(below: 10) {
        case 0: "null"
        case 1: pick(["true", "false"])
        case 2...5: pick(Self.numbers)
        default: string(pick(Self.strings))
        }
    }

    private mutating func value(depth: Int) -> String {
        switch number(below: 10) {
        case 0 where depth > 0: "[" + list(4) { $0.value(depth: depth - 1) } + "]"
        case 1 where depth > 0: "[" + list(4) { $0.scalar() } + "]"
        case 2...3 where depth > 0: object(depth: depth - 1)
        default: scalar()
        }
    }

    private mutating func object(depth: Int) -> String {
        var members: [String] = []
        var seen: Set<[UInt8]> = []
        for _ in 0..<number(below: 8) {
            let name = number(below: 3) == 0 ? pick(Self.names) : pick(["a", "b", "c"])
            guard seen.insert(Array(name.utf8)).inserted || isUntidy else { continue }
            let space = number(below: 8) == 0 ? " " : ""
            members.append(string(name, isName: true) + space + ":" + space + value(depth: depth))
        }
        return "{" + members.joined(separator: ",") + "}"
    }

    /// An item: an object most of the time.
    package mutating func item() -> String {
        number(below: 20) == 0 ? value(depth: 2) : object(depth: 3)
    }

    // MARK: Filters

    /// A dotted path.
    package mutating func path() -> String {
        let names = (0...max(0, number(below: 5) - 2)).map { _ in
            number(below: 3) == 0 ? pick(Self.names) : pick(["a", "b", "c"])
        }
        return names.map { name in
            name.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\")
                .split(separator: ".", omittingEmptySubsequences: false).joined(separator: "\\.")
        }.joined(separator: ".")
    }

    private mutating func property() -> String { #"{"property":\#(JSON.quote(path()))}"# }

    private mutating func literal() -> String {
        switch number(below: 8) {
        case 0: pick(["true", "false"])
        case 1...4: pick(Self.numbers)
        default: JSON.quote(pick(Self.strings))
        }
    }

    private mutating func pattern() -> String {
        let parts = ["%", "_", "\\%", "\\_", "\\\\", "a", "B", "o", "n", "é", "😀", "%a%", "Bo", "'"]
        return JSON.quote((0..<number(below: 5)).map { _ in pick(parts) }.joined())
    }

    /// A filter in CQL2's JSON encoding.
    package mutating func filter(depth: Int = 3) -> String {
        func operation(_ name: String, _ arguments: String...) -> String {
            #"{"op":"\#(name)","args":[\#(arguments.joined(separator: ","))]}"#
        }
        switch number(below: depth > 0 ? 14 : 9) {
        case 0...3: return operation(pick(["=", "<>", "<", "<=", ">", ">="]), property(), literal())
        case 4: return operation("like", property(), pattern())
        case 5: return operation("between", property(), literal(), literal())
        case 6: return operation("in", property(), "[" + list(5) { $0.literal() } + "]")
        case 7: return operation("isNull", property())
        case 8: return operation("a_contains", property(), "[" + list(2) { $0.literal() } + "]")
        case 9: return pick(["true", "false"])
        case 10: return operation("not", filter(depth: depth - 1))
        default:
            let count = 2 + number(below: 3)
            let filters = (0..<count).map { _ in filter(depth: depth - 1) }
            return operation(pick(["and", "or"]), filters.joined(separator: ","))
        }
    }

    /// A `sort` parameter of up to three keys.
    package mutating func sort() -> String {
        let keys = (0..<number(below: 4)).map { _ in
            #"{"property":\#(JSON.quote(path())),"order":"\#(pick(["asc", "desc"]))"}"#
        }
        return "[" + keys.joined(separator: ",") + "]"
    }
}
