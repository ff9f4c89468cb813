import CRUDConfiguration
import CRUDJSON
import CRUDModel
import CRUDStorage
import CRUDWire

/// Finds the collections of one event loop for those who may use them.
final class CollectionDirectory {
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing
    // that is called during an access comes back to it.
    @exclusivity(unchecked) var table: CollectionTable

    init(_ table: CollectionTable) {
        self.table = table
    }

    /// The collection of that name, if the peer of a call has that access to it.
    ///
    /// - Throws: `permission_denied`, which comes first, `collection_not_found`, and `unavailable` for one that is
    ///   closed.
    func find(
        _ name: JSONSlice, _ call: borrowing Call, to access: MethodAccess
    ) throws(CRUDError) -> Collection {
        let collection = try call.withDecoded(name) { name throws(CRUDError) in
            try find(name, call.session, access.permissions)
        }
        if let refusal = collection.refusal, call.method != .collectionDescribe, call.method != .collectionDrop {
            throw refusal
        }
        return collection
    }

    private func find(
        _ name: Span<UInt8>, _ session: Session, _ needed: Permissions
    ) throws(CRUDError) -> Collection {
        guard let collection = table.collection(named: name) else {
            guard session.authority.permissions(forName: name).isSuperset(of: needed) else {
                throw .denied(needed)
            }
            throw .unmapped
        }
        guard session.authority.permissions(for: collection).isSuperset(of: needed) else { throw .denied(needed) }
        return collection
    }
}

extension MethodAccess {
    /// What a peer must be allowed.
    var permissions: Permissions {
        switch self {
        case .everybody: []
        case .read: .read
        case .write: .write
        case .readWrite: [.read, .write]
        case .admin: .admin
        // Each of them is checked by itself.
        case .operations: []
        }
    }
}

extension CRUDError {
    static func denied(_ needed: Permissions) -> CRUDError {
        CRUDError(.permissionDenied, "the access rules do not allow you this, which needs \(needed.list)")
    }
}
