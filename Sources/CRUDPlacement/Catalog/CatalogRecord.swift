import CRUDModel

/// One line of the catalog's file: what has become of any number of collections and storages at one moment.
struct CatalogRecord: Equatable {
    /// A collection without anything to be remembered has ended.
    var collections: [(name: [UInt8], placement: Placement)] = []
    /// The identity of the storage of a backend; empty: it is not known any more.
    var storages: [String: String] = [:]

    static func == (left: Self, right: Self) -> Bool {
        left.storages == right.storages && left.collections.count == right.collections.count
            && zip(left.collections, right.collections).allSatisfy { $0 == $1 }
    }
}

/// Everything that a catalog says.
struct CatalogContents: Equatable, Sendable {
    var placements: [[UInt8]: Placement] = [:]
    /// The identities of storages, by the names of their backends.
    var storages: [String: String] = [:]

    mutating func apply(_ record: CatalogRecord) {
        for (name, placement) in record.collections { placements[name] = placement.isNothing ? nil : placement }
        for (backend, identity) in record.storages { storages[backend] = identity.isEmpty ? nil : identity }
    }
}
