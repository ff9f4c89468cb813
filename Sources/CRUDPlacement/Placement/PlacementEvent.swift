package import CRUDModel

/// What may happen to the placement of a collection.
package enum PlacementEvent: Equatable, Sendable {
    /// Its first record is about to be written there, or it has been found in that storage.
    case create(at: CollectionPlace)
    /// The configuration wants it somewhere.
    case want(Wish)
    /// It is dropped, with everything that there is of it. Where the catalog has no place for it, it has been found in
    /// the place named here, or nowhere.
    case drop(found: CollectionPlace?)
    /// What was left behind is dropped.
    case dropOriginals
    /// Nothing of its name has been found where it is to be moved to.
    case vacant(CollectionPlace)
    /// That place has everything, while nothing is written.
    case copied(to: CollectionPlace)
    /// Nothing is left of it in an obsolete place.
    case removed(CollectionPlace)
    /// A backend has become another storage under the same name.
    case leave(backend: String)
    /// The feed in the place that is to be served begins anew.
    case begunFeed(CollectionPlace)
}

/// Where a configuration wants a collection, and what is allowed for that.
package struct Wish: Equatable, Sendable {
    /// Nil: no rule names the collection.
    package var place: CollectionPlace?
    /// Whether its records may be orphaned, by the administrator's word.
    package var force: Bool
    /// Whether its records may be moved.
    package var move: Bool
    /// Whether the configuration has the backend of the place that is authoritative now.
    package var hasSource: Bool
    /// The backends to which others write too. What they write to a collection that is being moved would be lost.
    package var shared: Set<String>
    /// What is in the place that is authoritative now. It matters only where the next placement depends on it.
    package var occupancy: Occupancy
    /// Where records of that name are in the way of a move; nil: nowhere, as far as is known.
    package var obstacle: CollectionPlace?
    /// Whether the collection is to have a feed of changes.
    package var hasFeed: Bool

    package init(
        _ place: CollectionPlace?, force: Bool = false, move: Bool = false, hasSource: Bool = true,
        shared: Set<String> = [], occupancy: Occupancy = .unknown, obstacle: CollectionPlace? = nil,
        hasFeed: Bool = false
    ) {
        self.place = place
        self.force = force
        self.move = move
        self.hasSource = hasSource
        self.shared = shared
        self.occupancy = occupancy
        self.obstacle = obstacle
        self.hasFeed = hasFeed
    }

    /// That of some places to which others write too.
    func shared(among places: CollectionPlace...) -> CollectionPlace? { places.first { shared.contains($0.backend) } }
}

/// Whether a place has records.
package enum Occupancy: Equatable, Sendable {
    case empty
    /// With how many, where that is known.
    case records(Int?)
    /// The backend has not replied, or is not there.
    case unknown
}

/// Why an event must not change a placement.
package enum PlacementRefusal: Error, Equatable, Sendable {
    /// It is the end of an act on a placement that has changed meanwhile.
    case stale
    /// The collection is served from another place.
    case elsewhere(CollectionPlace)
    /// What is wanted are originals that are older than the records in the second place, or, if that is nil, than those
    /// that were left last.
    case older(originals: CollectionPlace, than: CollectionPlace?)
    /// Records are still being removed from the wanted place.
    case beingRemoved(CollectionPlace)
    /// The collection is to be moved from a backend that the configuration does not have.
    case noSource(CollectionPlace)
    /// Others write to the backend of that place, so that it is neither left nor moved to.
    case shared(CollectionPlace)
    /// Records of that name are in the way of a move.
    case occupied(CollectionPlace)
    /// The collection is being moved to another place than the one that is wanted.
    case moving(from: CollectionPlace, to: CollectionPlace, wanted: CollectionPlace?)
    /// The records would be orphaned.
    case orphans(Occupancy, at: CollectionPlace, wanted: CollectionPlace?, hasSource: Bool)
}
