/// One entry of the configuration's `collections`: in which backend and format the collections of a pattern are stored.
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
    /// The name of an entry of the configuration's `backends`.
    package let backend: String
    package let format: Format
    /// Property paths, none twice, each well-formed.
    package let indexes: [String]
    /// Where the pattern stands in the configuration file.
    package let position: SourcePosition
    /// Whether collections that hold records are moved where the rule changes their place.
    package let moves: Bool
    /// What is remembered of the collections' changes; nil: nothing.
    package let changes: Changes?

    /// The setting `changes`.
    package struct Changes: Sendable, Equatable {
        /// For how long removals are remembered.
        package var retention: Duration
        /// Where the setting stands in the configuration file.
        package var position: SourcePosition

        package static let defaultRetention = Duration.seconds(7 * 86_400)

        package init(retention: Duration = Self.defaultRetention, position: SourcePosition) {
            self.retention = retention
            self.position = position
        }

        package static func == (left: Self, right: Self) -> Bool { left.retention == right.retention }
    }

    package init(
        pattern: CollectionPattern, backend: String, format: Format, indexes: [String], position: SourcePosition,
        moves: Bool = false, changes: Changes? = nil
    ) {
        self.pattern = pattern
        self.backend = backend
        self.format = format
        self.indexes = indexes
        self.position = position
        self.moves = moves
        self.changes = changes
    }
}

/// The rules of all collections, indexed by name.
package struct CollectionRules: Sendable {
    /// In the order of the file.
    package let rules: [CollectionRule]
    /// The rules without a glob, as indexes into `rules`, ordered by name.
    private let named: [Int]
    /// The globs, as indexes into `rules`, ordered by precedence.
    private let globs: [Int]

    package init(_ rules: [CollectionRule]) {
        self.rules = rules
        named = rules.indices.filter { !rules[$0].pattern.isGlob }
            .sorted { rules[$0].pattern.literal.lexicographicallyPrecedes(rules[$1].pattern.literal) }
        globs = rules.indices.filter { rules[$0].pattern.isGlob }
            .sorted { (rules[$1].pattern.literalCodePoints, $0) < (rules[$0].pattern.literalCodePoints, $1) }
    }

    /// The rule of a collection: the one with its name, else the matching glob with the most literal code points, of
    /// several such the first in the file; nil where no rule matches.
    ///
    /// - Parameter name: UTF-8.
    package func rule(for name: Span<UInt8>) -> CollectionRule? {
        var low = 0
        var high = named.count
        while low < high {
            let middle = (low + high) / 2
            let rule = rules[named[middle]]
            switch compare(0..<name.count, name, with: rule.pattern.literal) {
            case 0: return rule
            case 1...: low = middle + 1
            default: high = middle
            }
        }
        for index in globs where rules[index].pattern.matches(name) { return rules[index] }
        return nil
    }
}
