import CRUDClient

/// A record as it is kept.
struct Record {
    let id: [UInt8]
    var item: EncodedItem
    var revision: Revision
    /// In milliseconds since 1970-01-01 UTC; nil: never.
    var expiresAt: Int?
    /// Of its last write.
    var sequence: UInt64

    func versioned() -> Versioned<EncodedItem> {
        Versioned(id: String(decoding: id, as: UTF8.self), item: item, revision: revision, expiresAt: expiresAt)
    }

    func versioned<Item: Decodable>(in collection: String) throws -> Versioned<Item> {
        let record = versioned()
        return try record.map { try $0.decoded(of: record.id, in: collection) }
    }
}
