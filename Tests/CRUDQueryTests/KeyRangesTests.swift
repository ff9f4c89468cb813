import CRUDJSON
import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDQuery

/// Which keys a filter can be true for.
@Suite struct KeyRangesTests {
    private static let path = PropertyPath(names: ["a"])

    private func ranges(_ text: String) throws -> KeyRanges? {
        KeyRanges(try Filter(cql2Text: text), of: Self.path)
    }

    /// The key of a value given as JSON.
    private static func key(_ value: String) -> [UInt8] {
        var encoder = IndexKeyEncoder([path])
        var key: [UInt8] = []
        try? encoder.encode(Array(#"{"a":\#(value)}"#.utf8).span) { key = Array($1) }
        return key
    }

    private static func isIn(_ ranges: KeyRanges, _ key: [UInt8]) -> Bool {
        ranges.ranges.contains { $0.contains(key) }
    }

    private static let values = [
        "null", "false", "true", "-1e400", "-1", "0", "1", "1.5", "2", "9007199254740993", "3e300", "1e400", #""""#,
        #""a""#,
        #""ab""#, #""abc""#, #""ac""#, #""b""#, #""\u0000""#, #""😀""#, "[]", "[1]", "{}",
    ]

    /// The values, of those above, whose keys are in the ranges: neither fewer nor more than the filter can be true
    /// for.
    @Test(arguments: [
        ("a = 1", "1"), ("a = 1.0", "1"), ("a <> 1", "-1e400 -1 0 1.5 2 9007199254740993 3e300 1e400"),
        ("a < 1", "-1e400 -1 0"), ("a <= 1", "-1e400 -1 0 1"), ("a > 1.5", "2 9007199254740993 3e300 1e400"),
        ("a >= 1.5", "1.5 2 9007199254740993 3e300 1e400"), ("a > 9007199254740992", "9007199254740993 3e300 1e400"),
        ("a < 9007199254740994", "-1e400 -1 0 1 1.5 2 9007199254740993"), ("a >= 1e400", "1e400"),
        ("a = 'ab'", #""ab""#), ("a > 'ab'", #""abc" "ac" "b" "😀""#), ("a <= 'ab'", #""" "a" "ab" "\u0000""#),
        ("a <> 'ab'", #""" "a" "abc" "ac" "b" "\u0000" "😀""#), ("a > ''", #""a" "ab" "abc" "ac" "b" "\u0000" "😀""#),
        ("a = true", "true"), ("a <> true", "false"), ("a < true", "false"), ("a >= false", "false true"),
        ("a BETWEEN 0 AND 1.7", "0 1 1.5"), ("a NOT BETWEEN 0 AND 1.7", "-1e400 -1 2 9007199254740993 3e300 1e400"),
        ("a BETWEEN 2 AND 1", ""), ("a BETWEEN 1 AND 'b'", ""), ("a IN (1, 'b', true, 1.0)", #"true 1 "b""#),
        ("a IN (7)", ""),
        ("a IS NULL", "null"), ("a LIKE 'ab%'", #""ab" "abc""#), ("a LIKE 'a_'", #""a" "ab" "abc" "ac""#),
        ("a LIKE '%'", #""" "a" "ab" "abc" "ac" "b" "\u0000" "😀""#), ("A_CONTAINS(a, (1))", "[] [1]"),
        ("a > 0 AND a < 2", "1 1.5"), ("a > 0 AND b = 1", "1 1.5 2 9007199254740993 3e300 1e400"),
        ("a > 0 AND a = 'b'", ""),
        ("a = 1 OR a = 'b'", #"1 "b""#), ("a < 1 OR a < 2", "-1e400 -1 0 1 1.5"), ("NOT a > 0", "-1e400 -1 0"),
        ("NOT (a > 0 OR a = 'b')", ""), ("NOT (a > 0 AND a = 1)", "-1e400 -1 0 1.5 2 9007199254740993 3e300 1e400"),
        ("a IS NULL OR a = 2", "null 2"), ("(a = 1 OR a = 2) AND (a = 2 OR a = 3)", "2"), ("a = 1 AND FALSE", ""),
    ])
    func rangesHoldWhatCanBeTrue(text: String, expected: String) throws {
        let ranges = try #require(try ranges(text))
        #expect(Self.values.filter { Self.isIn(ranges, Self.key($0)) }.joined(separator: " ") == expected)
    }

    @Test func valuesOtherThanNull() throws {
        let ranges = try #require(try ranges("a IS NOT NULL"))
        #expect(Self.values.filter { !Self.isIn(ranges, Self.key($0)) } == ["null"])
    }

    @Test(arguments: [
        "b = 1", "a = 1 OR b = 1", "TRUE", "NOT FALSE", "a NOT IN (1, 2)", "b = 1 AND b = 2", "b IS NULL",
    ])
    func whatSaysNothingAboutTheProperty(text: String) throws {
        #expect(try ranges(text) == nil)
    }

    @Test(arguments: [
        ("a = 1", true), ("a = 'x'", true), ("a = true", true), ("a IS NULL", true), ("A_CONTAINS(a, (1))", true),
        ("a IN (1, 1.0)", true), ("a BETWEEN 1 AND 1", true), ("a >= 1 AND a <= 1", true),
        ("a = 9007199254740993", true),
        ("a IN (1, 2)", false), ("a <= true", false), ("a LIKE 'x%'", false), ("a > 1", false),
        ("a = 1 AND a = 2", false),
    ])
    func oneKey(text: String, isPoint: Bool) throws {
        let ranges = try #require(try ranges(text))
        #expect((ranges.point != nil) == isPoint)
    }

    /// A string that is too long for a key has none; the keys of others are in the ranges all the same.
    @Test func longStrings() throws {
        let (short, long) = (String(repeating: "x", count: 511), String(repeating: "x", count: 512))
        let (lessThanLong, above) = (Self.key(#""\#(short)""#), Self.key(#""\#(short.dropLast())y""#))
        for (comparison, holdsShort, holdsAbove) in [
            ("=", false, false), ("<", true, false), ("<=", true, false), (">", false, true), (">=", false, true),
            ("<>", true, true),
        ] {
            let ranges = try #require(try ranges("a \(comparison) '\(long)'"))
            #expect(Self.isIn(ranges, lessThanLong) == holdsShort, "\(comparison)")
            #expect(Self.isIn(ranges, above) == holdsAbove, "\(comparison)")
        }
        #expect(try ranges("a LIKE '\(long)%'") == KeyRanges.none)
        #expect(Self.isIn(try #require(try ranges("a LIKE '\(short)%'")), lessThanLong))
    }

    /// Whatever a filter is true for has its key in the ranges.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func rangesAreNeverTooNarrow(seed: UInt64) throws {
        var author = QueryAuthor(seed: seed, isUntidy: true)
        let items = (0..<60).map { _ in author.item() }
        let parsed = try items.map { try JSON(parsing: $0) }
        var restrictions = 0
        for _ in 0..<100 {
            let text = author.filter()
            let reference = ReferenceEvaluator(try JSON(parsing: text))
            let filter = try Filter(cql2JSON: text)
            for path in ["a", "b", "c", "a.b"] {
                let path = try #require(PropertyPath(text: path))
                guard let ranges = KeyRanges(filter, of: path) else { continue }
                restrictions += 1
                var encoder = IndexKeyEncoder([path])
                for (item, json) in zip(items, parsed) where reference.evaluate(json) == true {
                    var key: [UInt8] = []
                    try encoder.encode(Array(item.utf8).span) { key = Array($1) }
                    if !Self.isIn(ranges, key) { Issue.record("\(text) is true for \(item), \(path)") }
                }
            }
        }
        #expect(restrictions > 20)
    }

    /// Conditions beside a long list are not each time intersected with all of it: this took seconds, on an event loop.
    @Test func manyConditionsBesideALongList() throws {
        let list = Filter.isIn(Self.path, (0..<9000).map { .string("k\($0)") })
        let others = (0..<300).map { Filter.comparison(.notEqual, Self.path, .string("z\($0)")) }
        var nested = list
        for other in others.prefix(60) { nested = .or([nested, .not(other)]) }
        let all = Filter.and([list] + others)
        for filter in [list, all] { #expect(try #require(KeyRanges(filter, of: Self.path)).ranges.count >= 9000) }
        func time(_ filter: Filter) -> Duration {
            (0..<3).map { _ in ContinuousClock().measure { _ = KeyRanges(filter, of: Self.path) } }.min() ?? .zero
        }
        // One of several rounds shows it, however busy the machine is.
        let isFast = (0..<4).contains { _ in
            let alone = time(list)
            return time(all) < alone * 20 && time(nested) < alone * 20
        }
        #expect(isFast)
        #expect(KeyRanges(list, of: Self.path, atMost: 1000) == nil)
        // What has been left out only adds candidates.
        let few = try #require(KeyRanges(.and([.isNull(Self.path), list]), of: Self.path, atMost: 1000))
        #expect(few == KeyRanges(point: .null))
    }

    @Test func setsOfKeys() {
        func range(_ lower: UInt8, _ upper: UInt8?) -> KeyRange {
            KeyRange(lower: [lower], upper: upper.map { [$0] } ?? [])
        }
        #expect(
            KeyRanges([range(5, 7), range(1, 3), range(3, 4), range(6, 9), range(20, nil), range(30, 31)]).ranges
                == [range(1, 4), range(5, 9), range(20, nil)])
        let one = KeyRanges([range(1, 5), range(8, 12), range(20, nil)])
        let other = KeyRanges([range(0, 2), range(4, 9), range(30, 31), range(40, nil)])
        #expect(
            one.intersection(other).ranges == [range(1, 2), range(4, 5), range(8, 9), range(30, 31), range(40, nil)])
        #expect(other.intersection(one) == one.intersection(other))
        #expect(one.intersection(.none) == KeyRanges.none && one.intersection(.all) == one)
    }
}
