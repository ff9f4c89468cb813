/// One of the operations that ``RecordStore/batch(_:)`` and ``RecordStore/transaction(_:)`` carry out.
public struct RecordOperation: Sendable {
    /// What is to be done to the record. `ifRevision` makes it conditional, as in the method of the same name.
    public enum Action: Sendable {
        case create(EncodedItem)
        case update(EncodedItem, ifRevision: Revision? = nil)
        case upsert(EncodedItem, ifRevision: Revision? = nil)
        case patch(EncodedItem, ifRevision: Revision? = nil, upsert: Bool = false)
        case delete(ifRevision: Revision? = nil)
        /// Nothing; it fails with ``CRUDError/Code/revisionMismatch`` unless the record has that revision, or is not
        /// there where nil is given.
        case check(Revision?)
    }

    /// The record's collection; nil: that of the store that carries it out.
    public var collection: String?
    public var id: String
    public var action: Action

    public init(_ action: Action, id: String, in collection: String? = nil) {
        self.action = action
        self.id = id
        self.collection = collection
    }
}

/// What an operation has led to.
public struct RecordOutcome: Sendable {
    /// The record's new revision; nil after a deletion and a check.
    public var revision: Revision?
    /// After a patch: the item as it is now.
    public var item: EncodedItem?

    public init(revision: Revision? = nil, item: EncodedItem? = nil) {
        self.revision = revision
        self.item = item
    }
}
