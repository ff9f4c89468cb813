package import CRUDModel

/// How far something is that is to be done for a collection: in memory only.
package struct ActProgress: Sendable {
    /// What an administrator sees.
    package enum Phase: String, Sendable {
        case pending, copying, switching, removing, suspended, failed
    }

    package let collection: [UInt8]
    package let act: Placement.Act
    package internal(set) var phase = Phase.pending
    /// Why it is suspended or has failed, or what it waits for.
    package internal(set) var reason: String?
    /// How many records have been copied.
    package internal(set) var copied = 0
    package internal(set) var total = 0

    init(_ collection: [UInt8], _ act: Placement.Act) {
        self.collection = collection
        self.act = act
    }
}

/// A move that is not over, as an administrator sees it.
package struct MoveProgress: Sendable {
    package let collection: [UInt8]
    package let from: CollectionPlace
    package let to: CollectionPlace
    package var copied = 0
    package var total = 0
    package var phase = ActProgress.Phase.pending
    package var reason: String?
}

/// A place from which a collection is being removed, as an administrator sees it.
package struct RemovalProgress: Sendable {
    package let collection: [UInt8]
    package let place: CollectionPlace
    /// Why it could not be removed so far.
    package var reason: String?
    /// Whether it is tried again only when an administrator wants that.
    package var hasFailed = false
}

/// What is to be done for a collection, as its placement says at one moment.
package struct PlacementProgress: Sendable {
    package private(set) var move: MoveProgress?
    package let removals: [RemovalProgress]
    package let originals: [CollectionPlace]

    /// - Parameter acts: how far those of the collection are; what has none is still to begin.
    init(of name: [UInt8], _ placement: Placement, _ acts: [ActProgress]) {
        originals = placement.originals
        removals = placement.obsolete.map { place in
            let progress = acts.first { $0.act == .remove(place) }
            return RemovalProgress(
                collection: name, place: place, reason: progress?.reason, hasFailed: progress?.phase == .failed)
        }
        guard let from = placement.authority, let to = placement.destination else { return }
        var move = MoveProgress(collection: name, from: from, to: to)
        if let progress = acts.first(where: { $0.act == .copy(from, to: to) || $0.act == .probe(to) }) {
            (move.copied, move.total) = (progress.copied, progress.total)
            (move.phase, move.reason) = (progress.phase, progress.reason)
        } else if let progress = acts.first(where: { $0.act == .remove(to) || $0.act == .beginFeed(from) }) {
            (move.phase, move.reason) = (progress.phase, progress.reason)
        }
        self.move = move
    }
}
