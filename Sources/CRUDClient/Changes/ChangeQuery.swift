public import CRUDModel

/// A query for one page of a collection's changes.
public struct ChangeQuery: Sendable {
    /// Which records. A change of one that the prefix excludes is left out; one that the filter excludes is
    /// ``Change/Kind/unmatched(_:)``.
    public var selection: RecordSelection
    /// Where the page begins: ``ChangePage/cursor`` of the previous page, ``Cursor/start`` or ``Cursor/now``.
    public var after: Cursor
    /// The items have these properties only, nested as they were; nil: all of them.
    public var fields: [PropertyPath]?
    /// The most changes of the page, from 1 to the daemon's limit `query_limit` (10000); nil: 1000.
    public var limit: Int?
    /// How long the page is held back while there are no changes; at most 300 seconds.
    public var wait: Duration

    public init(
        _ selection: RecordSelection = .all, after cursor: Cursor = .start, fields: [PropertyPath]? = nil,
        limit: Int? = nil, wait: Duration = .zero
    ) {
        self.selection = selection
        self.after = cursor
        self.fields = fields
        self.limit = limit
        self.wait = wait
    }
}

/// A page of a collection's changes, in the order in which they took effect.
///
/// A record is in it once, at the place of its last change: states in between may be missing, the newest one never is.
public struct ChangePage: Sendable {
    /// None if nothing has changed during ``ChangeQuery/wait``.
    public var changes: [Change<EncodedItem>.Kind]
    /// Where the next page begins.
    public var cursor: Cursor
    /// Whether the next page has changes already.
    public var hasMore: Bool
    /// The ids of records that have changed, but are not on the page because their stored bytes cannot be decoded; at
    /// most 100.
    public var corrupt: [String]

    public init(changes: [Change<EncodedItem>.Kind], cursor: Cursor, hasMore: Bool, corrupt: [String] = []) {
        self.changes = changes
        self.cursor = cursor
        self.hasMore = hasMore
        self.corrupt = corrupt
    }
}
