import CRUDJSON
import CRUDTestSupport
import Testing

@testable import CRUDModel

/// Random patterns over random texts, with escapes and code points of all lengths: `like` agrees with the definition. A
/// failure names its seed.
@Suite struct LikePatternTests {
    /// The definition, which tries everything.
    private static func matches(_ pattern: ArraySlice<Unicode.Scalar>, _ text: ArraySlice<Unicode.Scalar>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        switch first {
        case "%": return matches(pattern.dropFirst(), text) || !text.isEmpty && matches(pattern, text.dropFirst())
        case "_": return !text.isEmpty && matches(pattern.dropFirst(), text.dropFirst())
        case "\\":
            return text.first == pattern.dropFirst().first && matches(pattern.dropFirst(2), text.dropFirst())
        default: return text.first == first && matches(pattern.dropFirst(), text.dropFirst())
        }
    }

    private static let letters: [[String]] = [["a", "b"], ["a", "é", "😀", "€"], ["a", "%", "_", "\\", "\"", "é"]]

    private static func escaped(_ text: some Sequence<Unicode.Scalar>) -> String {
        text.map { ["%", "_", "\\"].contains($0) ? "\\\($0)" : "\($0)" }.joined()
    }

    private func check(_ pattern: String, _ text: String, _ seed: UInt64) throws -> Bool {
        var evaluator = try FilterEvaluator(.like(PropertyPath(names: ["a"]), pattern: pattern))
        var writer = JSONWriter()
        writer.object { $0.member("a", text) }
        let expected = Self.matches(Array(pattern.unicodeScalars)[...], Array(text.unicodeScalars)[...])
        let result = try evaluator.evaluate(writer.bytes.span)
        if result != expected { Issue.record("\(pattern) for \(text), seed \(seed)") }
        return expected
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func shortPatterns(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var matches = 0
        for round in 0..<3000 {
            let letters = Self.letters[round % 3]
            let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in letters.randomElement(using: &random)! }
            var pattern = ""
            for _ in 0..<Int.random(in: 0...8, using: &random) {
                switch Int.random(in: 0...4, using: &random) {
                case 0 where !pattern.hasSuffix("%"): pattern += "%"
                case 1: pattern += "_"
                default: pattern += Self.escaped(letters.randomElement(using: &random)!.unicodeScalars)
                }
            }
            if try check(pattern, text.joined(), seed) { matches += 1 }
        }
        #expect(matches > 100)
    }

    /// Parts of a long text, some of their code points replaced by `_`: segments of more than 64 bytes, too.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func longSegments(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var matches = 0
        for round in 0..<200 {
            let letters = Self.letters[round % 3]
            let text = (0..<Int.random(in: 100...600, using: &random))
                .map { _ in letters.randomElement(using: &random)! }.joined()
            let scalars = Array(text.unicodeScalars)
            var pattern = ""
            var start = 0
            for _ in 0..<Int.random(in: 1...2, using: &random) {
                start += Int.random(in: 0...100, using: &random)
                let part = scalars.dropFirst(start).prefix(Int.random(in: 1...150, using: &random))
                start += part.count
                var segment = ""
                for scalar in part {
                    segment += Int.random(in: 0...5, using: &random) == 0 ? "_" : Self.escaped([scalar])
                }
                if Int.random(in: 0...3, using: &random) == 0 { segment += "b" }
                pattern += "%" + segment
            }
            if Bool.random(using: &random) { pattern += "%" }
            guard pattern.utf8.count <= LikePattern.maximumBytes else { continue }
            if try check(pattern, text, seed) { matches += 1 }
        }
        #expect(matches > 20)
    }
}
