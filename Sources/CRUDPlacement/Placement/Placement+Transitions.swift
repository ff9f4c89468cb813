import CRUDModel

// The table of states and events: the only code that decides what becomes of a placement. P is the authoritative place,
// Q the one that the collection is being moved to, W the wanted one.

extension Placement {
    /// What an event does to a placement.
    package enum Outcome: Equatable, Sendable {
        case same
        case to(Placement)
        case refused(PlacementRefusal)
    }

    package func next(_ event: PlacementEvent) -> Outcome {
        let outcome = outcome(of: event)
        return outcome == .to(self) ? .same : outcome
    }

    private func outcome(of event: PlacementEvent) -> Outcome {
        switch event {
        case .create(let place): create(at: place)
        case .want(let wish): want(wish)
        case .drop(let found): .to(withoutRecords(found))
        case .dropOriginals: .to(withoutOriginals)
        case .vacant(let place): vacant(place)
        case .copied(let place): copied(to: place)
        case .removed(let place): removed(place)
        case .leave(let backend): leave(backend)
        case .begunFeed(let place): begunFeed(in: place)
        }
    }

    // MARK: Clients

    private func create(at wanted: CollectionPlace) -> Outcome {
        switch state {
        case .absent:
            if isBlocked(wanted) { return .refused(.beingRemoved(wanted)) }
            if originals.contains(wanted) { return .refused(.older(originals: wanted, than: originals.last)) }
            return .to(becoming(.resident(wanted)))
        case .resident(let place), .planned(let place, to: _), .copying(let place, to: _):
            return place == wanted ? .same : .refused(.elsewhere(place))
        }
    }

    // MARK: The configuration

    private func want(_ wish: Wish) -> Outcome {
        guard let wanted = wish.place else { return wantNowhere(wish) }
        switch state {
        case .absent: return wantAbsent(at: wanted, wish)
        case .resident(let place): return wanted == place ? .same : want(wanted, insteadOf: place, wish)
        case .planned(let place, to: let next), .copying(let place, to: let next):
            if wanted == place { return .to(staying(in: place)) }
            if wanted == next {
                if let shared = wish.shared(among: place, next) { return .refused(.shared(shared)) }
                return wish.hasSource ? .same : .refused(.noSource(place))
            }
            return want(wanted, insteadOf: place, wish)
        }
    }

    private func wantAbsent(at wanted: CollectionPlace, _ wish: Wish) -> Outcome {
        guard let index = originals.firstIndex(of: wanted) else { return .same }
        let isLast = index == originals.count - 1
        guard wish.force || isLast else { return .refused(.older(originals: wanted, than: originals.last)) }
        return .to(serving(wanted, wish).without(original: wanted))
    }

    /// - Parameters:
    ///   - wanted: neither the authoritative place nor the one that the collection is being moved to.
    ///   - place: the authoritative one.
    private func want(_ wanted: CollectionPlace, insteadOf place: CollectionPlace, _ wish: Wish) -> Outcome {
        if originals.contains(wanted) {
            guard wish.force else { return .refused(.older(originals: wanted, than: place)) }
            return .to(staying(in: place).without(original: wanted).serving(wanted, wish).with(original: place))
        }
        // That it is empty says nothing of what others write there a moment later.
        if wish.move || !wish.force, let shared = wish.shared(among: place) { return .refused(.shared(shared)) }
        let shared = wish.shared(among: wanted)
        // What has no records is not moved, but begun there.
        if wish.move, wish.hasSource, shared == nil || wish.occupancy != .empty {
            if let shared { return .refused(.shared(shared)) }
            if let obstacle = wish.obstacle { return .refused(.occupied(obstacle)) }
            return .to(staying(in: place).becoming(.planned(place, to: wanted)))
        }
        if isBlocked(wanted) { return .refused(.beingRemoved(wanted)) }
        if wish.occupancy == .empty { return .to(staying(in: place).serving(wanted, wish)) }
        if wish.force { return .to(staying(in: place).serving(wanted, wish).with(original: place)) }
        return .refused(orphaning(place, wish))
    }

    private func wantNowhere(_ wish: Wish) -> Outcome {
        switch state {
        case .absent: return .same
        case .resident(let place), .planned(let place, to: _), .copying(let place, to: _):
            if wish.occupancy == .empty { return .to(staying(in: place).becoming(.absent)) }
            if wish.force { return .to(staying(in: place).becoming(.absent).with(original: place)) }
            return .refused(orphaning(place, wish))
        }
    }

    private func orphaning(_ place: CollectionPlace, _ wish: Wish) -> PlacementRefusal {
        switch state {
        case .planned(_, to: let next), .copying(_, to: let next):
            .moving(from: place, to: next, wanted: wish.place)
        case .absent, .resident:
            wish.move && !wish.hasSource
                ? .noSource(place)
                : .orphans(wish.occupancy, at: place, wanted: wish.place, hasSource: wish.hasSource)
        }
    }

    private func leave(_ backend: String) -> Outcome {
        var next = self
        next.obsolete.removeAll { $0.backend == backend }
        next.originals.removeAll { $0.backend == backend }
        switch state {
        case .absent, .resident: break
        case .planned(let place, to: let wanted):
            if place.backend == backend || wanted.backend == backend { next.state = .resident(place) }
        case .copying(let place, to: let copies):
            if copies.backend == backend {
                next.state = .resident(place)
            } else if place.backend == backend {
                next = next.staying(in: place)
            }
        }
        return .to(next)
    }

    // MARK: The end of acts

    private func vacant(_ wanted: CollectionPlace) -> Outcome {
        switch state {
        case .planned(let place, to: wanted) where !isBlocked(wanted) && !beginsFeed:
            .to(becoming(.copying(place, to: wanted)))
        case .absent, .resident, .planned, .copying: .refused(.stale)
        }
    }

    private func copied(to copies: CollectionPlace) -> Outcome {
        switch state {
        case .copying(let place, to: copies) where !beginsFeed:
            .to(becoming(.resident(copies)).with(original: place))
        case .absent, .resident, .planned, .copying: .refused(.stale)
        }
    }

    private func removed(_ place: CollectionPlace) -> Outcome {
        guard obsolete.contains(place) else { return .refused(.stale) }
        var next = self
        next.obsolete.removeAll { $0 == place }
        return .to(next)
    }

    private func begunFeed(in place: CollectionPlace) -> Outcome {
        guard beginsFeed, authority == place else { return .refused(.stale) }
        var next = self
        next.beginsFeed = false
        return .to(next)
    }

    // MARK: Parts of transitions

    private func becoming(_ state: State) -> Placement {
        var next = self
        next.state = state
        if next.authority != authority { next.beginsFeed = false }
        return next
    }

    /// In a place to which nothing has been copied.
    private func serving(_ place: CollectionPlace, _ wish: Wish) -> Placement {
        var next = becoming(.resident(place))
        next.beginsFeed = wish.hasFeed
        return next
    }

    /// The collection at rest where it is: of a move that is not over the copies become obsolete.
    private func staying(in place: CollectionPlace) -> Placement {
        switch state {
        case .absent, .resident, .planned: becoming(.resident(place))
        case .copying(_, to: let copies): becoming(.resident(place)).with(obsolete: [copies])
        }
    }

    private var withoutOriginals: Placement {
        var next = self
        next.originals = []
        return next.with(obsolete: originals)
    }

    private func withoutRecords(_ found: CollectionPlace?) -> Placement {
        let places: [CollectionPlace] =
            switch state {
            case .absent: [found].compactMap(\.self).filter { !originals.contains($0) }
            case .resident(let place), .planned(let place, to: _): [place]
            case .copying(let place, to: let copies): [place, copies]
            }
        var next = withoutOriginals.becoming(.absent).with(obsolete: places)
        next.owner = nil
        return next
    }

    private func without(original: CollectionPlace) -> Placement {
        var next = self
        next.originals.removeAll { $0 == original }
        return next
    }

    private func with(original: CollectionPlace) -> Placement {
        var next = without(original: original)
        next.originals.append(original)
        return next
    }

    private func with(obsolete places: [CollectionPlace]) -> Placement {
        var next = self
        next.obsolete += places.filter { !obsolete.contains($0) }
        return next
    }
}
