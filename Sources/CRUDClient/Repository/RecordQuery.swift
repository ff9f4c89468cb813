public import CRUDModel

/// A selection of a collection's records.
public struct RecordSelection: Sendable, Hashable {
    /// Only records for whose item this is true; nil: any item.
    public var filter: Filter?
    /// Only records whose id begins with this, compared by code point; nil: any id.
    public var prefix: String?

    public init(filter: Filter? = nil, prefix: String? = nil) {
        self.filter = filter
        self.prefix = prefix
    }

    /// Every record.
    public static let all = RecordSelection()

    // Not synthesised, because String's == ignores the difference between canonically equivalent texts.

    public static func == (left: RecordSelection, right: RecordSelection) -> Bool {
        left.filter == right.filter && left.prefix.map { Array($0.utf8) } == right.prefix.map { Array($0.utf8) }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(filter)
        hasher.combine(prefix.map { Array($0.utf8) })
    }
}

/// A query for one page of records.
public struct RecordQuery: Sendable {
    /// Which records.
    public var selection: RecordSelection
    /// The order; by default by id.
    public var sort: SortOrder
    /// The most records of the page, from 1 to the daemon's limit `query_limit` (10000); nil: 1000.
    public var limit: Int?
    /// Where the page begins: ``RecordPage/next`` of the previous page; nil: at the start.
    public var cursor: Cursor?
    /// The items have these properties only, nested as they were; nil: all of them.
    public var fields: [PropertyPath]?
    /// Whether the page has a ``RecordPage/plan``.
    public var explains: Bool

    public init(
        _ selection: RecordSelection = .all, sort: SortOrder = SortOrder(), limit: Int? = nil, cursor: Cursor? = nil,
        fields: [PropertyPath]? = nil, explains: Bool = false
    ) {
        self.selection = selection
        self.sort = sort
        self.limit = limit
        self.cursor = cursor
        self.fields = fields
        self.explains = explains
    }
}

/// A position between two pages of a query's records, or of a collection's changes. It remains valid when the daemon
/// restarts, so that its text may be stored.
public struct Cursor: Sendable {
    /// The store's text of the cursor; opaque to others.
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    /// Of changes: every record that is there, and then what changes.
    public static let start = Cursor("start")
    /// Of changes: only what changes from the moment on in which the first page is asked for.
    public static let now = Cursor("now")
}

/// A page of the records that a query selects.
public struct RecordPage<Item> {
    public var records: [Versioned<Item>]
    /// Where the next page begins; nil: this is the last page. Any page may be shorter than its limit, and even empty.
    public var next: Cursor?
    /// How it was found; nil unless the query asked for it.
    public var plan: QueryPlan?
    /// The ids of records that are not on the page because their stored bytes cannot be decoded; at most 100.
    public var corrupt: [String]

    public init(records: [Versioned<Item>], next: Cursor?, plan: QueryPlan? = nil, corrupt: [String] = []) {
        self.records = records
        self.next = next
        self.plan = plan
        self.corrupt = corrupt
    }
}

/// How a page of records was found.
public struct QueryPlan: Sendable, Codable, Hashable {
    /// The property path whose index was used; nil: none was.
    public var index: String?
    /// Who has sorted the records: `id` if they are in the order of their ids, `storage`, or `host`.
    public var sort: String
    /// How many records were examined.
    public var scanned: Int

    public init(index: String?, sort: String, scanned: Int) {
        self.index = index
        self.sort = sort
        self.scanned = scanned
    }
}

extension RecordPage: Sendable where Item: Sendable {}
