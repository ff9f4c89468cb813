/// A record that was read: its item, and the revision that makes a later write conditional.
///
/// ```swift
/// var account = try await accounts.readVersioned(id: "42", as: Account.self)
/// account.item.balance += 10
/// try await accounts.update(id: "42", item: account.item, ifRevision: account.revision)
/// ```
public struct Versioned<Item> {
    /// The record's id.
    public var id: String
    public var item: Item
    /// The revision that the record had when it was read.
    public var revision: Revision

    public init(id: String, item: Item, revision: Revision) {
        self.id = id
        self.item = item
        self.revision = revision
    }
}

extension Versioned: Sendable where Item: Sendable {}
