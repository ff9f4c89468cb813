extension CollectionRule {
    /// The paths of ``indexes``.
    package var indexPaths: [PropertyPath] { indexes.compactMap { PropertyPath(utf8: $0.utf8) } }

    /// Whether collections are stored alike by another rule: in the same backend and format, with the same indexes.
    package func stores(like other: CollectionRule) -> Bool {
        backend == other.backend && format == other.format && indexes == other.indexes
    }
}
