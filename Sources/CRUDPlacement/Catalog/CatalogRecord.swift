import CRUDModel
package import CRUDStorage

/// A storage, as the catalog remembers it.
package struct CatalogStorage: Equatable, Sendable {
    /// What tells it from others; empty: it is forgotten.
    package var identity: String
    /// Where the configuration said that it is, for messages; nil where an option of the plugin does not say it.
    package var location: String?
    /// Whether it may have collections that the catalog lacks: it has not been surveyed since the catalog knows it.
    package var isUnsurveyed = false

    package init(_ identity: String, at location: String? = nil, isUnsurveyed: Bool = false) {
        self.identity = identity
        self.location = location
        self.isUnsurveyed = isUnsurveyed
    }

    /// - Returns: nil where the backend has not opened its storage yet.
    package init?(of backend: Backend) {
        guard let identity = backend.storageIdentity else { return nil }
        self.init(identity, at: identity.isEmpty ? nil : backend.storageLocation)
    }

    /// Of a storage that nothing tells from others.
    package static let forgotten = CatalogStorage("")

    var isNothing: Bool { identity.isEmpty }
}

/// One line of the catalog's file: what has become of any number of collections and storages at one moment.
struct CatalogRecord: Equatable {
    /// A collection without anything to be remembered has ended.
    var collections: [(name: [UInt8], placement: Placement)] = []
    /// By the names of their backends.
    var storages: [String: CatalogStorage] = [:]

    static func == (left: Self, right: Self) -> Bool {
        left.storages == right.storages && left.collections.count == right.collections.count
            && zip(left.collections, right.collections).allSatisfy { $0 == $1 }
    }
}

/// Everything that a catalog says.
struct CatalogContents: Equatable, Sendable {
    var placements: [[UInt8]: Placement] = [:]
    /// By the names of their backends.
    var storages: [String: CatalogStorage] = [:]

    mutating func apply(_ record: CatalogRecord) {
        for (name, placement) in record.collections { placements[name] = placement.isNothing ? nil : placement }
        for (backend, storage) in record.storages { storages[backend] = storage.isNothing ? nil : storage }
    }
}
