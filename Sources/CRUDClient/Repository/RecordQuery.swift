public import CRUDModel

/// Which records of a collection are meant.
public struct RecordSelection: Sendable, Hashable {
    /// Only records whose item this is true of; nil: whatever the item.
    public var filter: Filter?
    /// Only records whose id begins with this, compared by code point; nil: whatever the id.
    public var prefix: String?

    public init(filter: Filter? = nil, prefix: String? = nil) {
        self.filter = filter
        self.prefix = prefix
    }

    /// Every record.
    public static let all = RecordSelection()

    // Written out: String's own equality would take canonically equivalent texts for one.

    public static func == (left: RecordSelection, right: RecordSelection) -> Bool {
        left.filter == right.filter && left.prefix.map { Array($0.utf8) } == right.prefix.map { Array($0.utf8) }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(filter)
        hasher.combine(prefix.map { Array($0.utf8) })
    }
}

/// What a page of records is asked for with.
public struct RecordQuery: Sendable {
    /// Which records.
    public var selection: RecordSelection
    /// In what order; by id unless given.
    public var sort: SortOrder
    /// The most records of the page, from 1 to the daemon's limit `query_limit` (10000); nil: 1000.
    public var limit: Int?
    /// Where the page begins: what the page before it said; nil: at the start.
    public var cursor: Cursor?

    public init(
        _ selection: RecordSelection = .all, sort: SortOrder = SortOrder(), limit: Int? = nil, cursor: Cursor? = nil
    ) {
        self.selection = selection
        self.sort = sort
        self.limit = limit
        self.cursor = cursor
    }
}

/// A place between two pages of a query's records. It stays good when the daemon starts anew.
public struct Cursor: Sendable {
    /// The cursor as the store spells it; it means nothing to anybody else.
    public let text: String

    public init(_ text: String) {
        self.text = text
    }
}

/// Some of the records that a query selects.
public struct RecordPage<Item> {
    public var records: [Versioned<Item>]
    /// Where the next page begins; nil: there is none. A page may be shorter than its limit, and even empty, with others
    /// behind it.
    public var next: Cursor?

    public init(records: [Versioned<Item>], next: Cursor?) {
        self.records = records
        self.next = next
    }
}

extension RecordPage: Sendable where Item: Sendable {}
