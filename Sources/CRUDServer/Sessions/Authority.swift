import CRUDConfiguration
import CRUDStorage

/// What a peer may do by the access rules that are in force. What they say of a collection is remembered.
struct Authority {
    /// Whether the peer may manage the daemon.
    let isAdmin: Bool
    /// How many requests per second its user may make; nil: any number.
    let rate: RequestRate?
    // The same one, which `rate` keeps: each request asks it, and counting references would be most of what that costs.
    let uncountedRate: Unmanaged<RequestRate>?
    /// What its user may take.
    let limits: UserLimits
    /// Whether no limit of users is for it.
    let isExempt: Bool
    private let peer: Peer
    private let access: AccessPolicy
    /// For collections that the peer has named lately: a few, since it may name any number.
    private var known: [(collection: Collection, allowed: Permissions)] = []

    private static let maximumKnown = 32

    init(of peer: Peer, by access: AccessPolicy, _ rates: RequestRates) {
        self.peer = peer
        self.access = access
        limits = access.limits(uid: peer.uid, groups: peer.groups)
        isExempt = access.isExempt(uid: peer.uid)
        rate = rates.rate(of: peer.uid, maximum: limits.requestsPerSecond)
        uncountedRate = rate.map(Unmanaged.passUnretained)
        isAdmin = access.permissions(uid: peer.uid, groups: peer.groups).contains(.admin)
    }

    /// Who owns the collections that the peer creates.
    var creator: CollectionCreator { CollectionCreator(uid: peer.uid, maximumCollections: limits.collections) }

    /// What the peer may do with a collection.
    mutating func permissions(for collection: Collection) -> Permissions {
        for known in known where known.collection === collection { return known.allowed }
        let name = collection.name
        let allowed = permissions(forName: name.span)
        if known.count == Self.maximumKnown { known.removeAll(keepingCapacity: true) }
        known.append((collection, allowed))
        return allowed
    }

    /// What the peer may do with a collection of that name.
    func permissions(forName name: Span<UInt8>) -> Permissions {
        access.permissions(uid: peer.uid, groups: peer.groups, collection: name)
    }
}
