/// Where a collection lives, and how its items are stored there.
package struct CollectionPlace: Sendable, Hashable {
    /// The name of a backend.
    package var backend: String
    package var format: CollectionRule.Format

    package init(backend: String, format: CollectionRule.Format) {
        self.backend = backend
        self.format = format
    }
}

extension CollectionPlace: CustomStringConvertible {
    /// `backend main as json`.
    package var description: String { "backend \(backend) as \(format.rawValue)" }
}

extension CollectionRule {
    /// Where the rule puts collections.
    package var place: CollectionPlace { CollectionPlace(backend: backend, format: format) }

    /// The rule with another place: for a collection that is not yet, or not any more, where the rule puts it.
    package func placing(in place: CollectionPlace) -> CollectionRule {
        CollectionRule(
            pattern: pattern, backend: place.backend, format: place.format, indexes: indexes, position: position,
            moves: moves, changes: changes)
    }
}
