extension CollectionRule {
    /// The paths of ``indexes``.
    package var indexPaths: [PropertyPath] { indexes.compactMap { PropertyPath(utf8: $0.utf8) } }

    /// Whether collections have a feed of their changes.
    package var remembersChanges: Bool { changes != nil }

    /// Whether collections are stored alike by another rule: in the same backend and format, with the same indexes,
    /// and with or without their changes.
    package func stores(like other: CollectionRule) -> Bool {
        backend == other.backend && format == other.format && indexes == other.indexes
            && remembersChanges == other.remembersChanges
    }
}
