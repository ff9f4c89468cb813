/// One operation of ``RecordStore/batch(_:)`` or ``RecordStore/transaction(_:)``.
public struct RecordOperation: Sendable {
    /// The kind of operation. `ifRevision` makes it conditional, as in the method with the same name.
    public enum Action: Sendable {
        case create(EncodedItem)
        case update(EncodedItem, ifRevision: Revision? = nil)
        case upsert(EncodedItem, ifRevision: Revision? = nil)
        case patch(EncodedItem, ifRevision: Revision? = nil, upsert: Bool = false)
        /// Applies operations to single members, to what `patch` has made of the item if it is not nil.
        case apply(
            FieldOperations, patch: EncodedItem? = nil, ifRevision: Revision? = nil, upsert: Bool = false)
        /// Determines when the record expires, and changes nothing else.
        case touch(ifRevision: Revision? = nil)
        case delete(ifRevision: Revision? = nil)
        /// Changes nothing; fails with ``CRUDError/Code/revisionMismatch`` if the record has another revision, and with
        /// ``CRUDError/Code/recordNotFound`` if there is none; nil: there must be none.
        case check(Revision?)
    }

    /// The record's collection; nil: that of the store that executes it.
    public var collection: String?
    public var id: String
    public var action: Action
    /// Nil: a patch keeps the record's expiry, other writes, and a touch, leave a record that does not expire.
    /// Deletions and checks ignore it.
    public var expiry: Expiry?

    public init(_ action: Action, id: String, in collection: String? = nil, expiry: Expiry? = nil) {
        self.action = action
        self.id = id
        self.collection = collection
        self.expiry = expiry
    }
}

/// The outcome of an operation.
public struct RecordOutcome: Sendable {
    /// The record's new revision; nil after a deletion and a check.
    public var revision: Revision?
    /// After a patch: the new item.
    public var item: EncodedItem?

    public init(revision: Revision? = nil, item: EncodedItem? = nil) {
        self.revision = revision
        self.item = item
    }
}
