import CRUDModel

extension PlacementRefusal {
    /// What is told about a collection, without its name.
    package var message: String {
        switch self {
        case .stale: "its placement has changed meanwhile"
        case .elsewhere(let place): "it is served from \(place)"
        case .older(let originals, let place?):
            "was moved from \(originals) to \(place); the originals are older than the records there, see "
                + "crudctl drop --moved"
        case .older(let originals, nil): "has older originals in \(originals)"
        case .beingRemoved(let place): "is still being removed from \(place); try again when that is done"
        case .noSource(let place): "is to be moved from \(place), which has to stay in the file until that is over"
        case .shared(let place):
            "cannot leave its place or be moved: others write to backend \(place.backend) too, and what they write "
                + "meanwhile would be lost; stop all but this one, and let it have the backend for itself until "
                + "the collection is moved (postgresql: without shared)"
        case .occupied(let place): "cannot be moved: there are records of that name in \(place)"
        case .moving(let place, let next, let wanted):
            "is being moved from \(place) to \(next), and is now mapped \(Self.target(wanted)): wait for that, cancel "
                + "it by mapping it to \(place), or let --move move it there instead"
        case .orphans(let occupancy, let place, let wanted, let hasSource):
            "has \(occupancy.text) in \(place) and is now mapped \(Self.target(wanted)), which orphans them; "
                + "\(Self.way(place, wanted, hasSource)), --force does it all the same"
        }
    }

    private static func target(_ wanted: CollectionPlace?) -> String { wanted.map { "to \($0)" } ?? "nowhere" }

    private static func way(_ place: CollectionPlace, _ wanted: CollectionPlace?, _ hasSource: Bool) -> String {
        switch (wanted, hasSource) {
        case (nil, _): "give it a rule again"
        case (_, true): "--move moves them"
        case (_, false): "with backend \(place.backend) in the file again --move moves them"
        }
    }
}

extension Occupancy {
    package var text: String {
        switch self {
        case .empty: "no records"
        case .records(0?): "records that are being written"
        case .records(let count?): "\(count) record\(count == 1 ? "" : "s")"
        case .records(nil), .unknown: "an unknown number of records"
        }
    }
}
