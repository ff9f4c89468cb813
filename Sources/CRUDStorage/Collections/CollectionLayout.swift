package import CRUDModel

/// What a backend keeps for a collection beside its records: indexes, and the history of its changes.
///
/// The configuration says it, by name. It belongs to the ``BackendCollection``, is replaced there when the file changes
/// it, and is told to the plugin by the backend's writer alone.
package struct CollectionLayout: Sendable, Equatable {
    /// The paths of the indexes; index n of a plugin that keeps indexes is the one at position n.
    package var indexPaths: [PropertyPath] = []
    /// For how long the feed of changes remembers removals; nil: there is no feed.
    package var retention: Duration?

    package init(indexPaths: [PropertyPath] = [], retention: Duration? = nil) {
        self.indexPaths = indexPaths
        self.retention = retention
    }

    package init(_ rule: CollectionRule) {
        self.init(indexPaths: rule.indexPaths, retention: rule.changes?.retention)
    }

    /// Whether a plugin sees no difference: how long removals are remembered is the host's to know.
    func isTold(like other: CollectionLayout) -> Bool {
        indexPaths == other.indexPaths && (retention == nil) == (other.retention == nil)
    }
}
