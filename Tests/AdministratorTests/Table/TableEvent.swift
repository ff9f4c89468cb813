import CRUDModel
import CRUDPlacement

/// Something that happens to a collection: a column of the table.
enum TableEvent: CaseIterable, Sendable {
    /// A client writes a record.
    case create
    // Files that want it elsewhere, with what a reload may be allowed, or after all of its records were deleted.
    case away, awayForced, awayMoving, awayEmpty
    /// A file that wants it where the backend is down.
    case downForced
    /// A file that wants it where it may be on its way to already.
    case again
    /// A file that wants it where it is.
    case cancel
    // Files that want it where it was.
    case back, backForced, backMoving
    // Files that want it where something of it is being removed.
    case toObsolete, toObsoleteForced, toObsoleteMoving
    // Files without a rule for it.
    case nowhere, nowhereForced, nowhereEmpty
    case drop, dropOriginals

    /// An event that is new has no case here, and does not compile.
    enum Kind: CaseIterable {
        case create, want, drop, dropOriginals, vacant, copied, removed, leave, begunFeed

        init(_ event: PlacementEvent) {
            switch event {
            case .create: self = .create
            case .want: self = .want
            case .drop: self = .drop
            case .dropOriginals: self = .dropOriginals
            case .vacant: self = .vacant
            case .copied: self = .copied
            case .removed: self = .removed
            case .leave: self = .leave
            case .begunFeed: self = .begunFeed
            }
        }

        /// By what it comes to one collection.
        var events: [TableEvent] {
            switch self {
            case .create: [.create]
            case .want:
                [
                    .away, .awayForced, .awayMoving, .awayEmpty, .downForced, .again, .cancel, .back, .backForced,
                    .backMoving, .toObsolete, .toObsoleteForced, .toObsoleteMoving, .nowhere, .nowhereForced,
                    .nowhereEmpty,
                ]
            case .drop: [.drop]
            case .dropOriginals: [.dropOriginals]
            // They follow at once where a backend is up, and from ``PlacementTable/repair()`` where it was down.
            case .vacant, .copied, .removed, .begunFeed: []
            // ``PlacementTable/replaceStorage()`` is one of all collections.
            case .leave: []
            }
        }
    }

    /// How it is done.
    enum Action {
        case write
        /// The place of the wish is in the file, the rest are options of the reload.
        case reload(Wish)
        case drop, dropOriginals
    }

    var action: Action {
        switch self {
        case .create: .write
        case .away, .awayEmpty: .reload(Wish(.w))
        case .awayForced: .reload(Wish(.w, force: true))
        case .downForced: .reload(Wish(.q, force: true))
        case .awayMoving: .reload(Wish(.w, move: true))
        case .again: .reload(Wish(.q, move: true))
        case .cancel: .reload(Wish(.p))
        case .back: .reload(Wish(.x))
        case .backForced: .reload(Wish(.x, force: true))
        case .backMoving: .reload(Wish(.x, move: true))
        case .toObsolete: .reload(Wish(.y))
        case .toObsoleteForced: .reload(Wish(.y, force: true))
        case .toObsoleteMoving: .reload(Wish(.y, move: true))
        case .nowhere, .nowhereEmpty: .reload(Wish(nil))
        case .nowhereForced: .reload(Wish(nil, force: true))
        case .drop: .drop
        case .dropOriginals: .dropOriginals
        }
    }

    /// What it is to a placement.
    ///
    /// - Parameters:
    ///   - wanted: where the file wants the collection before.
    ///   - records: how many the collection has.
    func event(_ placement: Placement, wanted: CollectionPlace, records: Int) -> PlacementEvent {
        switch action {
        case .write: return .create(at: placement.authority ?? wanted)
        case .reload(var wish):
            wish.occupancy = records == 0 ? .empty : .records(records)
            wish.hasFeed = true
            return .want(wish)
        case .drop: return .drop(found: nil)
        case .dropOriginals: return .dropOriginals
        }
    }

    /// Whether all records are deleted before.
    var isAfterDeletion: Bool { self == .awayEmpty || self == .nowhereEmpty }

    func applies(to situation: TableSituation) -> Bool {
        switch self {
        case .create, .away, .awayForced, .awayMoving, .downForced, .again, .cancel, .nowhere, .nowhereForced, .drop,
            .dropOriginals:
            true
        case .awayEmpty, .nowhereEmpty: situation.state != .absent
        case .back, .backForced, .backMoving: situation.list == .originals
        case .toObsolete, .toObsoleteForced, .toObsoleteMoving: situation.list == .obsolete
        }
    }
}
