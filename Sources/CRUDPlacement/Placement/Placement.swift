package import CRUDModel

/// Where the records of one collection are.
///
/// The catalog alone says where they *are*, the configuration where they are *wanted*. The difference is a plan,
/// which becomes true by one durable record of the catalog, or not at all. What is served is a function of the catalog:
/// never of a plan, of a move in progress or of an earlier configuration.
///
///     absent ──▶ resident P ──▶ planned P→Q ──▶ copying P→Q ──▶ resident Q, originals +P
///
/// There is no state for a cancelled move (its copies become obsolete), for the switch (a transition), or for a drop:
/// every place becomes obsolete and the state `absent`, and the entry ends when nothing is left to be removed. That a
/// move is suspended or has failed is progress, which is remembered only while the daemon runs.
///
/// What is to be done follows from the placement alone (``acts``), and may be done again at any time: so a start after
/// a kill executes the acts of every placement that is not at rest, and knows nothing of what was in progress.
package struct Placement: Equatable, Sendable {
    package enum State: Equatable, Sendable {
        /// No place is authoritative.
        case absent
        /// The place is authoritative.
        case resident(CollectionPlace)
        /// The first place is authoritative; nothing of ours is in the second.
        case planned(CollectionPlace, to: CollectionPlace)
        /// The first place is authoritative; what the second has of this name are copies.
        case copying(CollectionPlace, to: CollectionPlace)
    }

    package var state: State
    /// Records that were left behind, the last ones last: never served, kept until an administrator drops them.
    package var originals: [CollectionPlace]
    /// Contents to be removed, never served; the removal is repeated until it is certain.
    package var obsolete: [CollectionPlace]
    /// The user whose write has created the collection; nil: it was found, or created before owners were remembered.
    package var owner: UInt32?
    /// Whether the feed of changes in the authoritative place is that of an earlier time, and has to end before the
    /// place is served: cursors may have been moved on from there, and other changes have the same numbers.
    package var beginsFeed: Bool

    package init(
        _ state: State, originals: [CollectionPlace] = [], obsolete: [CollectionPlace] = [], owner: UInt32? = nil,
        beginsFeed: Bool = false
    ) {
        self.state = state
        self.originals = originals
        self.obsolete = obsolete
        self.owner = owner
        self.beginsFeed = beginsFeed
    }

    /// The placement of a collection that the catalog does not know.
    package static let none = Placement(.absent)

    /// The place that is served; nil: none is.
    package var authority: CollectionPlace? {
        switch state {
        case .absent: nil
        case .resident(let place), .planned(let place, to: _), .copying(let place, to: _): place
        }
    }

    /// The same, once it may be served.
    package var served: CollectionPlace? { beginsFeed ? nil : authority }

    /// Where it is being moved to.
    package var destination: CollectionPlace? {
        switch state {
        case .absent, .resident: nil
        case .planned(_, to: let place), .copying(_, to: let place): place
        }
    }

    /// Whether nothing is to be done.
    package var isAtRest: Bool { destination == nil && obsolete.isEmpty && !beginsFeed }

    /// Whether the catalog needs to remember nothing.
    package var isNothing: Bool { state == .absent && originals.isEmpty && obsolete.isEmpty }

    /// Every place in which the collection may have records or copies that are to stay.
    package var kept: [CollectionPlace] {
        switch state {
        case .absent: originals
        case .resident(let place), .planned(let place, to: _): [place] + originals
        case .copying(let place, to: let copies): [place, copies] + originals
        }
    }

    /// Whether something of it is in a backend.
    package func uses(_ backend: String) -> Bool {
        authority?.backend == backend || kept.contains { $0.backend == backend }
            || obsolete.contains { $0.backend == backend }
    }

    /// Whether something is to be removed in a backend first: a removal there may be of all formats, and may take
    /// effect later than it was asked for.
    package func isBlocked(_ place: CollectionPlace) -> Bool {
        obsolete.contains { $0.backend == place.backend } && !kept.contains { $0.backend == place.backend }
            || obsolete.contains(place)
    }

    /// What holds for every placement: no place has two roles.
    package var isValid: Bool {
        let originals = Set(originals)
        let obsolete = Set(obsolete)
        guard originals.count == self.originals.count, obsolete.count == self.obsolete.count,
            originals.isDisjoint(with: obsolete)
        else { return false }
        if let authority, originals.contains(authority) || obsolete.contains(authority) { return false }
        if authority == nil, beginsFeed { return false }
        switch state {
        case .absent, .resident: return true
        case .planned(let place, to: let wanted): return place != wanted && !originals.contains(wanted)
        case .copying(let place, to: let copies):
            return place != copies && !originals.contains(copies) && !obsolete.contains(copies)
        }
    }

    /// Something that is to be done for a collection, by which its placement changes once it is done.
    package enum Act: Equatable, Sendable {
        /// Remove what is in a place.
        case remove(CollectionPlace)
        /// See that no record of the name is in the place that the collection is to be moved to.
        case probe(CollectionPlace)
        /// Copy, compare, and switch.
        case copy(CollectionPlace, to: CollectionPlace)
        /// End the feed in the place that is to be served, and begin another.
        case beginFeed(CollectionPlace)
    }

    /// What is to be done, each of them idempotent and independent of the others.
    package var acts: [Act] {
        let removals = obsolete.map(Act.remove)
        // A move would take the feed along.
        if let authority, beginsFeed { return removals + [.beginFeed(authority)] }
        switch state {
        case .absent, .resident: return removals
        // What is to be removed there comes first.
        case .planned(_, to: let wanted): return isBlocked(wanted) ? removals : removals + [.probe(wanted)]
        case .copying(let place, to: let copies): return removals + [.copy(place, to: copies)]
        }
    }
}
