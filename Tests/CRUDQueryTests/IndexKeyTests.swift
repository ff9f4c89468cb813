import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// Keys compare as the values compare in a sort.
@Suite struct IndexKeyTests {
    private static let path = PropertyPath(names: ["a"])
    private static let order = SortOrder([SortKey(path)])

    /// The key of the item's `a`; empty for none.
    private func key(_ item: String) throws -> [UInt8] {
        var encoder = IndexKeyEncoder([Self.path])
        var key: [UInt8] = []
        try encoder.encode(Array(item.utf8).span) { key = Array($1) }
        return key
    }

    private func value(_ item: String) throws -> SortValue {
        var reader = SortValueReader(Self.order)
        let item = Array(item.utf8)
        try reader.find(in: item.span)
        return reader.value(0, in: item.span)
    }

    private static let longText = String(repeating: "x", count: 511)

    private static let values =
        [
            "null", "false", "true", "[]", "[1]", "{}", #"{"b":1}"#, "0", "-0", "0.0", "-0.0", "1e-400", "-1e-400",
            "5e-324", "-5e-324", "4.9406564584124654e-324", "2.2250738585072009e-308", "2.2250738585072014e-308",
            "1", "1.0", "10e-1", "1.0000000000000002", "1.00000000000000011", "0.9999999999999999", "-1", "-1.5",
            "0.1", "0.10", "0.30000000000000004", "0.3", "2.5", "100", "1e2",
            "9007199254740991", "9007199254740992", "9007199254740992.0", "9007199254740993", "9007199254740993.0",
            "9007199254740994", "9007199254740995", "-9007199254740993", "-9007199254740992", "-9007199254740991",
            "-9007199254740994", "-9007199254740995", "4611686018427387904", "4611686018427387905",
            "4611686018427388415", "4611686018427388416", "9223372036854774783", "9223372036854774784",
            "9223372036854774785", "9223372036854775806", "9223372036854775807", "9223372036854775807.0",
            "9223372036854775808", "9.3e18", "18446744073709551615", "1e19", "-9223372036854775807",
            "-9223372036854775808", "-9223372036854775809", "-9223372036854774784", "-9223372036854774785",
            "1.7976931348623157e308", "-1.7976931348623157e308", "1e400", "-1e400", "2e400",
            #""""#, #""\u0000""#, #""a""#, #""a\u0000""#, #""a\u0000b""#, #""\u0061""#, #""ab""#, #""b""#, #""B""#,
            #""é""#, #""e\u0301""#, #""\uFFFD""#, #""\uE000""#, #""😀""#, #""\ud83d\ude00""#, #""\u007F""#,
            #""\u0001""#, "\"\u{10FFFF}\"",
        ]
        + [longText, longText.dropLast() + "y", longText.dropLast() + "", longText.dropLast() + "\\u0079"].map {
            "\"\($0)\""
        }

    @Test func orderOfKeysIsThatOfSortValues() throws {
        let items = ["{}", "1"] + Self.values.map { #"{"a":\#($0)}"# }
        let pairs = try items.map { (item: $0, key: try key($0), value: try value($0)) }
        for left in pairs {
            #expect(!left.key.isEmpty && left.key.count <= IndexKey.maximumBytes, "\(left.item)")
            for right in pairs {
                let order = left.value.compare(with: right.value).signum()
                let keys = left.key == right.key ? 0 : left.key.lexicographicallyPrecedes(right.key) ? -1 : 1
                if order != keys { Issue.record("\(left.item) \(right.item)") }
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func orderOfRandomNumbers(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let numbers = (0..<400).map { _ -> String in
            let bits = UInt64.random(in: 0...UInt64.max, using: &generator)
            let integer = Int64(bitPattern: bits) >> Int64.random(in: 0...62, using: &generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: return "\(integer)"
            case 1: return "\(Double(integer))"
            default:
                let value = Double(bitPattern: bits)
                return value.isFinite ? "\(value)" : "0.5"
            }
        }
        let pairs = try numbers.map { #"{"a":\#($0)}"# }.map { (key: try key($0), value: try value($0)) }
        for (left, right) in pairs.flatMap({ left in pairs.map { (left, $0) } }) {
            let order = left.value.compare(with: right.value)
            #expect(
                (order == 0) == (left.key == right.key) && (order < 0) == left.key.lexicographicallyPrecedes(right.key))
        }
    }

    /// The bound of a value is its key, and the keys above it are those of greater values.
    @Test func boundsAreKeys() throws {
        let items = Self.values.map { #"{"a":\#($0)}"# }
        for item in items {
            let bound = IndexKey.bound(try value(item))
            #expect(bound.isExact)
            #expect(bound.key == (try key(item)))
        }
        for text in [Self.longText + "a", Self.longText + "\u{0}", Self.longText + Self.longText] {
            let long = SortValue.string(Array(text.utf8))
            let bound = IndexKey.bound(long)
            #expect(!bound.isExact && bound.key.count == IndexKey.maximumBytes)
            for item in items {
                let isAbove = try value(item).compare(with: long) > 0
                #expect(isAbove == bound.key.lexicographicallyPrecedes(try key(item)), "\(item)")
            }
        }
    }

    @Test func valuesThatAreTooLongHaveNoKey() throws {
        let escaped = String(repeating: "\\u0078", count: 511)
        #expect(try key(#"{"a":"\#(Self.longText)"}"#).count == 512)
        #expect(try key(#"{"a":"\#(escaped)"}"#) == key(#"{"a":"\#(Self.longText)"}"#))
        #expect(try key(#"{"a":"\#(Self.longText)x"}"#) == [])
        #expect(try key(#"{"a":"\#(escaped)\u0078"}"#) == [])
        #expect(try key(#"{"a":"\#(Self.longText.dropLast())é"}"#) == [])
        #expect(try key(#"{"a":"\#(String(repeating: "x", count: 1 << 20))"}"#) == [])
    }

    @Test func severalKeysOfOneItem() throws {
        var encoder = IndexKeyEncoder(
            ["a", "b.c", "d", "a"].map { PropertyPath(names: $0.split(separator: ".").map(String.init)) })
        var keys: [[UInt8]] = []
        try encoder.encode(Array(#"{"a":"x","b":{"c":true},"a":"y"}"#.utf8).span) { number, key in
            #expect(number == keys.count)
            keys.append(Array(key))
        }
        #expect(keys == [[5, 0x79], [3], [1], [5, 0x79]])
        #expect(throws: JSONSyntaxError.self) { try encoder.encode(Array("{".utf8).span) { _, _ in } }
        #expect(throws: JSONSyntaxError.self) { try encoder.encode(Array("1 2".utf8).span) { _, _ in } }
    }

    @Test func successorsAreNoLongerThanKeys() {
        #expect(IndexKey.successor([5]) == [5, 0])
        let longest = [5] + [UInt8](repeating: 0x7A, count: 511)
        #expect(IndexKey.successor(longest) == longest.dropLast() + [0x7B])
    }
}
