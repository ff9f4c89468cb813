import CRUDModel
import CRUDPlacement
import Testing

private func place(_ name: String) -> CollectionPlace { CollectionPlace(backend: name, format: .json) }

private let (p, q, w) = (place("p"), place("q"), place("w"))

/// Every state in the roles that the wanted place can have in it.
private let situations: [Placement] = {
    let states: [Placement.State] = [.absent, .resident(p), .planned(p, to: q), .copying(p, to: q)]
    let lists: [(originals: [CollectionPlace], obsolete: [CollectionPlace])] = [
        ([], []), ([w], []), ([w, place("x")], []), ([], [w]), ([place("x")], [place("y")]),
    ]
    return states.flatMap { state in
        lists.map { Placement(state, originals: $0.originals, obsolete: $0.obsolete) }
    }
}()

/// The table of states and events, row by row: a second telling of the transitions, by lists instead of a
/// switch, so that a slip in one of them shows.
@Suite struct PlacementTests {
    private func staying(_ situation: Placement, _ state: Placement.State) -> Placement {
        var next = situation
        next.state = state
        if case .copying(_, to: let copies) = situation.state { next.obsolete.append(copies) }
        return next
    }

    private func adding(_ places: [CollectionPlace], to list: [CollectionPlace]) -> [CollectionPlace] {
        list.filter { !places.contains($0) } + places
    }

    @Test(arguments: situations)
    func creations(situation: Placement) {
        for wanted in [p, q, w] {
            let outcome = situation.next(.create(at: wanted))
            switch situation.authority {
            case wanted?: #expect(outcome == .same)
            case let authority?: #expect(outcome == .refused(.elsewhere(authority)))
            case nil where situation.obsolete.contains(wanted): #expect(outcome == .refused(.beingRemoved(wanted)))
            case nil where situation.originals.contains(wanted):
                #expect(outcome == .refused(.older(originals: wanted, than: situation.originals.last)))
            case nil:
                var next = situation
                next.state = .resident(wanted)
                #expect(outcome == .to(next))
            }
        }
    }

    /// A backend has another storage: what was there is not removed, and nothing is copied from or to it.
    @Test(arguments: situations)
    func storagesThatAreOthers(situation: Placement) {
        for backend in ["p", "q", "w", "x", "y", "another"] {
            var next = situation
            next.originals.removeAll { $0.backend == backend }
            next.obsolete.removeAll { $0.backend == backend }
            if next.destination != nil, ["p", "q"].contains(backend) {
                if case .copying = situation.state, backend == "p" { next.obsolete.append(q) }
                next.state = .resident(p)
            }
            #expect(situation.next(.leave(backend: backend)) == (next == situation ? .same : .to(next)))
        }
    }

    @Test(arguments: situations)
    func wishesForThePlacesOfAMove(situation: Placement) {
        guard let authority = situation.authority else { return }
        let home = situation.next(.want(Wish(authority)))
        let expected = staying(situation, .resident(authority))
        #expect(home == (expected == situation ? .same : .to(expected)))
        guard let next = situation.destination else { return }
        #expect(situation.next(.want(Wish(next))) == .same)
        #expect(situation.next(.want(Wish(next, force: true, move: true))) == .same)
        #expect(situation.next(.want(Wish(next, move: true, hasSource: false))) == .refused(.noSource(authority)))
    }

    @Test(arguments: situations)
    func wishesForOriginals(situation: Placement) {
        guard situation.originals.contains(w) else { return }
        for move in [false, true] {
            let outcome = situation.next(.want(Wish(w, move: move, occupancy: .empty)))
            let isLast = situation.originals.last == w
            if situation.authority == nil, isLast {
                #expect(outcome == .to(Placement(.resident(w))))
            } else {
                #expect(
                    outcome == .refused(.older(originals: w, than: situation.authority ?? situation.originals.last)))
            }
            var next = staying(situation, .resident(w))
            next.originals.removeAll { $0 == w }
            if let authority = situation.authority { next.originals.append(authority) }
            #expect(situation.next(.want(Wish(w, force: true, move: move))) == .to(next))
        }
    }

    @Test(arguments: situations)
    func wishesForAnotherPlace(situation: Placement) {
        guard !situation.originals.contains(w) else { return }
        guard let authority = situation.authority else {
            #expect(situation.next(.want(Wish(w, force: true, move: true, occupancy: .empty))) == .same)
            return
        }
        let isObsolete = situation.obsolete.contains(w)
        #expect(situation.next(.want(Wish(w, move: true))) == .to(staying(situation, .planned(authority, to: w))))
        let obstructed = Wish(w, move: true, occupancy: .empty, obstacle: w)
        #expect(situation.next(.want(obstructed)) == .refused(.occupied(w)))
        let resident = staying(situation, .resident(w))
        var forced = resident
        forced.originals.append(authority)
        let refusal = Placement.Outcome.refused(.beingRemoved(w))
        #expect(situation.next(.want(Wish(w, occupancy: .empty))) == (isObsolete ? refusal : .to(resident)))
        #expect(situation.next(.want(Wish(w, force: true))) == (isObsolete ? refusal : .to(forced)))
        for occupancy in [Occupancy.unknown, .records(3)] {
            let outcome = situation.next(.want(Wish(w, occupancy: occupancy)))
            if isObsolete {
                #expect(outcome == refusal)
            } else if let next = situation.destination {
                #expect(outcome == .refused(.moving(from: authority, to: next, wanted: w)))
            } else {
                #expect(outcome == .refused(.orphans(occupancy, at: authority, wanted: w, hasSource: true)))
            }
        }
    }

    /// A backend to which others write too is neither left, but by force, nor moved to; what has no records begins
    /// there.
    @Test(arguments: situations)
    func wishesWithSharedBackends(situation: Placement) {
        guard let authority = situation.authority else { return }
        if let next = situation.destination {
            for place in [authority, next] {
                let wish = Wish(next, force: true, move: true, shared: [place.backend])
                #expect(situation.next(.want(wish)) == .refused(.shared(place)))
            }
            let home = Wish(authority, move: true, shared: [authority.backend])
            #expect(situation.next(.want(home)) == situation.next(.want(Wish(authority))))
        }
        guard !situation.originals.contains(w) else { return }
        for (move, force) in [(true, false), (true, true), (false, false)] {
            let wish = Wish(w, force: force, move: move, shared: [authority.backend], occupancy: .empty)
            #expect(situation.next(.want(wish)) == .refused(.shared(authority)))
        }
        for wish in [Wish(w, force: true), Wish(nil, force: true), Wish(nil, occupancy: .empty), Wish(nil)] {
            var shared = wish
            shared.shared = [authority.backend, w.backend]
            #expect(situation.next(.want(shared)) == situation.next(.want(wish)))
        }
        for occupancy in [Occupancy.unknown, .records(3)] {
            let wish = Wish(w, move: true, shared: [w.backend], occupancy: occupancy)
            #expect(situation.next(.want(wish)) == .refused(.shared(w)))
        }
        let empty = Wish(w, move: true, shared: [w.backend], occupancy: .empty)
        #expect(situation.next(.want(empty)) == situation.next(.want(Wish(w, occupancy: .empty))))
    }

    @Test(arguments: situations)
    func noWish(situation: Placement) {
        guard let authority = situation.authority else {
            #expect(situation.next(.want(Wish(nil, force: true))) == .same)
            return
        }
        #expect(situation.next(.want(Wish(nil, occupancy: .empty))) == .to(staying(situation, .absent)))
        var orphaned = staying(situation, .absent)
        orphaned.originals.append(authority)
        #expect(situation.next(.want(Wish(nil, force: true))) == .to(orphaned))
        let refusal = PlacementRefusal.orphans(.unknown, at: authority, wanted: nil, hasSource: true)
        let isMoving = situation.destination.map { PlacementRefusal.moving(from: authority, to: $0, wanted: nil) }
        #expect(situation.next(.want(Wish(nil, move: true))) == .refused(isMoving ?? refusal))
    }

    @Test(arguments: situations)
    func drops(situation: Placement) {
        var originals = situation
        originals.originals = []
        originals.obsolete = adding(situation.originals, to: situation.obsolete)
        #expect(situation.next(.dropOriginals) == (originals == situation ? .same : .to(originals)))
        guard case .to(let dropped) = situation.next(.drop(found: nil)) else {
            #expect(situation.authority == nil && situation.originals.isEmpty)
            return
        }
        #expect(dropped.state == .absent && dropped.originals.isEmpty)
        let places = situation.kept + situation.obsolete
        #expect(Set(dropped.obsolete) == Set(places) && dropped.obsolete.count == Set(places).count)
    }

    @Test func aDropOfWhatWasFound() {
        #expect(Placement.none.next(.drop(found: w)) == .to(Placement(.absent, obsolete: [w])))
        #expect(Placement.none.next(.drop(found: nil)) == .same)
    }

    @Test(arguments: situations)
    func endsOfActs(situation: Placement) {
        for end in [q, w] {
            let vacant = situation.next(.vacant(end))
            if situation.state == .planned(p, to: end), !situation.obsolete.contains(end) {
                var next = situation
                next.state = .copying(p, to: end)
                #expect(vacant == .to(next))
            } else {
                #expect(vacant == .refused(.stale))
            }
            let copied = situation.next(.copied(to: end))
            if situation.state == .copying(p, to: end) {
                var next = situation
                next.state = .resident(end)
                next.originals.append(p)
                #expect(copied == .to(next))
            } else {
                #expect(copied == .refused(.stale))
            }
            var next = situation
            next.obsolete.removeAll { $0 == end }
            #expect(situation.next(.removed(end)) == (next == situation ? .refused(.stale) : .to(next)))
        }
    }

    /// Its feed begins anew where nothing is copied to; until then nothing is moved from there.
    @Test func feedsBeginAnew() {
        let forced = Placement(.resident(w), originals: [p], beginsFeed: true)
        #expect(Placement(.resident(p)).next(.want(Wish(w, force: true, hasFeed: true))) == .to(forced))
        #expect(
            Placement(.absent, originals: [w]).next(.want(Wish(w, hasFeed: true)))
                == .to(Placement(.resident(w), beginsFeed: true)))
        #expect(forced.acts == [.beginFeed(w)] && !forced.isAtRest)
        #expect(forced.next(.begunFeed(w)) == .to(Placement(.resident(w), originals: [p])))
        #expect(forced.next(.begunFeed(p)) == .refused(.stale))
        #expect(Placement(.resident(w)).next(.begunFeed(w)) == .refused(.stale))
        let moving = Placement(.planned(w, to: q), originals: [p], beginsFeed: true)
        #expect(forced.next(.want(Wish(q, move: true, hasFeed: true))) == .to(moving))
        #expect(moving.acts == [.beginFeed(w)] && moving.next(.vacant(q)) == .refused(.stale))
        #expect(moving.next(.begunFeed(w)) == .to(Placement(.planned(w, to: q), originals: [p])))
        #expect(moving.next(.drop(found: nil)) == .to(Placement(.absent, obsolete: [p, w])))
    }

    /// What is begun again while its copies are being removed is copied only when that is done.
    @Test func removalsComeFirst() {
        let again = Placement(.planned(p, to: q), obsolete: [q])
        #expect(again.acts == [.remove(q)])
        #expect(again.next(.vacant(q)) == .refused(.stale))
        #expect(Placement(.planned(p, to: q)).acts == [.probe(q)])
    }
}
