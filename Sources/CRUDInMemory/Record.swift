import CRUDClient

/// A record as it is kept.
struct Record {
    let id: [UInt8]
    var item: EncodedItem
    var revision: Revision

    func versioned<Item: Decodable>() throws -> Versioned<Item> {
        Versioned(id: String(decoding: id, as: UTF8.self), item: try item.decoded(), revision: revision)
    }
}
