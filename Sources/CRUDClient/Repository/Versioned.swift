#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
    /// When the record expires, by the clock of the store; nil if it does not, and in the result of a patch.
    public var expiresAt: Date?

    public init(id: String, item: Item, revision: Revision, expiresAt: Date? = nil) {
        self.id = id
        self.item = item
        self.revision = revision
        self.expiresAt = expiresAt
    }

    /// - Parameter expiresAt: in milliseconds since 1970-01-01 UTC.
    package init(id: String, item: Item, revision: Revision, expiresAt milliseconds: Int?) {
        self.init(
            id: id, item: item, revision: revision,
            expiresAt: milliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) })
    }
}

extension Versioned {
    /// The same record with another item.
    package func map<Other>(_ transform: (Item) throws -> Other) rethrows -> Versioned<Other> {
        Versioned<Other>(id: id, item: try transform(item), revision: revision, expiresAt: expiresAt)
    }
}

extension Versioned: Sendable where Item: Sendable {}
