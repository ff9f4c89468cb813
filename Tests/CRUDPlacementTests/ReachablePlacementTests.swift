import CRUDModel
import CRUDPlacement
import Testing

/// Every placement that events can lead to with three places, and every event in each of them.
@Suite struct ReachablePlacementTests {
    private static let places = [
        CollectionPlace(backend: "a", format: .json), CollectionPlace(backend: "a", format: .xml),
        CollectionPlace(backend: "b", format: .json),
    ]

    private static let wishes: [Wish] = (places.map(Optional.some) + [nil]).flatMap { place in
        [false, true].flatMap { force in
            [false, true].flatMap { move in
                [false, true].flatMap { hasSource in
                    [Occupancy.empty, .records(1), .unknown].flatMap { occupancy in
                        [nil, place].flatMap { obstacle in
                            (obstacle == nil ? [false, true] : [false]).map {
                                Wish(
                                    place, force: force, move: move, hasSource: hasSource, occupancy: occupancy,
                                    obstacle: obstacle, hasFeed: $0)
                            }
                        }
                    }
                }
            }
        }
    }

    private static let events: [PlacementEvent] =
        wishes.map(PlacementEvent.want) + [.drop(found: nil), .dropOriginals]
        + places.flatMap { place in
            [
                .create(at: place), .drop(found: place), .vacant(place), .copied(to: place), .removed(place),
                .leave(backend: place.backend), .begunFeed(place),
            ]
        }

    private static let reachable: [Placement] = {
        var reached = [Placement.none]
        var next = 0
        while next < reached.count {
            for event in events {
                guard case .to(let placement) = reached[next].next(event) else { continue }
                if !reached.contains(placement) { reached.append(placement) }
            }
            next += 1
        }
        return reached
    }()

    @Test func everyPlacementIsValid() {
        #expect(Self.reachable.count > 100)
        for placement in Self.reachable { #expect(placement.isValid, "\(placement)") }
    }

    /// No event but a drop makes records obsolete that were served, or forgets where they are; only what was found
    /// empty, or equal to what is served then, is left without being remembered.
    @Test func recordsAreNeverLost() {
        for placement in Self.reachable {
            for event in Self.events {
                guard case .to(let next) = placement.next(event) else { continue }
                switch event {
                case .drop, .removed, .dropOriginals, .leave: continue
                case .want(let wish) where wish.occupancy == .empty && !wish.force: break
                case .want(let wish) where wish.occupancy == .empty: continue
                case .want, .create, .vacant, .copied, .begunFeed:
                    if let authority = placement.authority {
                        #expect(next.kept.contains(authority), "\(placement) \(event) \(next)")
                    }
                }
                for original in placement.originals {
                    #expect(next.kept.contains(original), "\(placement) \(event) \(next)")
                }
            }
        }
    }

    /// A removal may be of a backend's whole collection, and late: nothing begins to be kept there before it is over.
    @Test func nothingBeginsWhereSomethingIsRemoved() {
        for placement in Self.reachable {
            for event in Self.events {
                guard case .to(let next) = placement.next(event) else { continue }
                for place in next.kept where !placement.kept.contains(where: { $0.backend == place.backend }) {
                    let isRemoved = placement.obsolete.contains { $0.backend == place.backend }
                    #expect(!isRemoved, "\(placement) \(event) \(next)")
                }
            }
        }
    }

    /// What has been copied only in part is never served, nor kept as an original.
    @Test func copiesBecomeObsolete() {
        for placement in Self.reachable {
            guard case .copying(_, to: let copies) = placement.state else { continue }
            for event in Self.events where event != .copied(to: copies) {
                guard case .to(let next) = placement.next(event) else { continue }
                if case .leave(copies.backend) = event { continue }
                let isOver = next.state != placement.state
                #expect(next.obsolete.contains(copies) == isOver, "\(placement) \(event) \(next)")
            }
        }
    }

    /// A place that a collection with a feed gets to without a copy is not served before its feed begins anew, and no
    /// event but that one, or another place, makes it served.
    @Test func feedsOfEarlierTimesAreNotServed() {
        var count = 0
        for placement in Self.reachable {
            for event in Self.events {
                guard case .to(let next) = placement.next(event), let place = next.authority else { continue }
                switch event {
                case .want(let wish) where place != placement.authority:
                    #expect(next.beginsFeed == wish.hasFeed, "\(placement) \(event) \(next)")
                    count += 1
                case .begunFeed, .copied, .create: #expect(!next.beginsFeed, "\(placement) \(event) \(next)")
                case .want, .drop, .dropOriginals, .vacant, .removed, .leave:
                    #expect(place == placement.authority && next.beginsFeed == placement.beginsFeed)
                }
            }
            if placement.beginsFeed {
                let isAct = placement.acts.filter { if case .remove = $0 { false } else { true } }
                #expect(isAct == placement.authority.map { [.beginFeed($0)] }, "\(placement)")
            }
        }
        #expect(count > 100)
    }

    /// Whatever acts come to an end in whatever order, no act is left.
    @Test func actsLeadToRest() {
        for placement in Self.reachable {
            var current = placement
            var steps = 0
            while let act = current.acts.first, steps < 10 {
                let event: PlacementEvent =
                    switch act {
                    case .remove(let place): .removed(place)
                    case .probe(let place): .vacant(place)
                    case .copy(_, to: let place): .copied(to: place)
                    case .beginFeed(let place): .begunFeed(place)
                    }
                guard case .to(let next) = current.next(event) else { break }
                current = next
                steps += 1
            }
            #expect(current.isAtRest, "\(placement)")
        }
    }
}
