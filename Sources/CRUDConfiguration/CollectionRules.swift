/// One entry of `collections`: where the collections that a pattern names live, and how.
package struct CollectionRule: Sendable {
    /// How a collection's items are stored.
    package enum Format: String, Sendable, CaseIterable {
        /// JSON text.
        case json
        /// An XML property list.
        case xml
        /// A binary property list.
        case plist
    }

    package let pattern: CollectionPattern
    /// The name of an entry of `backends`.
    package let backend: String
    package let format: Format
    /// Property paths, none twice, each well-formed.
    package let indexes: [String]
    /// Where the pattern stands in the file.
    package let position: SourcePosition
}

/// The section `collections`, arranged for finding the rule of a name.
package struct CollectionRules: Sendable {
    /// In the order of the file.
    package let rules: [CollectionRule]
    /// The rules for one name, as indexes into `rules`, by name.
    private let named: [Int]
    /// The globs, as indexes into `rules`, the one that wins first.
    private let globs: [Int]

    init(_ rules: [CollectionRule]) {
        self.rules = rules
        named = rules.indices.filter { !rules[$0].pattern.isGlob }
            .sorted { rules[$0].pattern.literal.lexicographicallyPrecedes(rules[$1].pattern.literal) }
        globs = rules.indices.filter { rules[$0].pattern.isGlob }
            .sorted { (rules[$1].pattern.literalCodePoints, $0) < (rules[$0].pattern.literalCodePoints, $1) }
    }

    /// The rule for a collection: the one that names it, else the matching glob with the most literal code points,
    /// of those the first in the file. Nil: no rule maps that name.
    ///
    /// - Parameter name: UTF-8.
    package func rule(for name: Span<UInt8>) -> CollectionRule? {
        var low = 0
        var high = named.count
        while low < high {
            let middle = (low + high) / 2
            let rule = rules[named[middle]]
            switch Self.order(rule.pattern.literal.span, name) {
            case 0: return rule
            case ..<0: low = middle + 1
            default: high = middle
            }
        }
        for index in globs where rules[index].pattern.matches(name) { return rules[index] }
        return nil
    }

    /// Negative, zero or positive: `left` stands before, at or after `right`, by their bytes.
    private static func order(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        for index in 0..<min(left.count, right.count) where left[index] != right[index] {
            return Int(left[index]) - Int(right[index])
        }
        return left.count - right.count
    }
}
