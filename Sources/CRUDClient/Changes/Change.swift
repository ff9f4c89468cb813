/// A change of a record, with the newest state of the record.
///
/// ```swift
/// switch change.kind {
/// case .saved(let user): cache[user.id] = user.item
/// case .removed(let id), .unmatched(let id): cache[id] = nil
/// }
/// ```
public struct Change<Item> {
    public enum Kind {
        /// The record was created or changed.
        case saved(Versioned<Item>)
        /// The record with this id was deleted, or has expired.
        case removed(String)
        /// The record with this id was created or changed, and the filter is not true for it, or not any more.
        case unmatched(String)
    }

    public var kind: Kind
    /// Where to begin again if this change was the last one that was processed: no change is missed then.
    ///
    /// Changes are read in pages. The cursor moves with the last change of a page; those that were processed before
    /// in the same page come once more.
    public var cursor: Cursor

    public init(_ kind: Kind, cursor: Cursor) {
        self.kind = kind
        self.cursor = cursor
    }

    /// The id of the record.
    public var id: String { kind.id }
}

extension Change.Kind {
    /// The id of the record.
    public var id: String {
        switch self {
        case .saved(let record): record.id
        case .removed(let id), .unmatched(let id): id
        }
    }

    /// The same change with another item.
    func map<Other>(_ transform: (Item) throws -> Other) rethrows -> Change<Other>.Kind {
        switch self {
        case .saved(let record): .saved(try record.map(transform))
        case .removed(let id): .removed(id)
        case .unmatched(let id): .unmatched(id)
        }
    }
}

extension Change: Sendable where Item: Sendable {}
extension Change.Kind: Sendable where Item: Sendable {}
