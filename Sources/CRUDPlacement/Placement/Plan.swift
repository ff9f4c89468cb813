package import CRUDModel

/// What a configuration makes of the collections that the catalog knows: computed without touching storage, and
/// recorded as a whole or refused as a whole.
package struct Plan: Sendable {
    /// What the administrator wants of collections that hold records and change their place.
    package struct Options: Sendable {
        /// Leave the records where they are.
        package var force: Bool
        /// Move them. A rule can say so too.
        package var move: Bool

        package init(force: Bool = false, move: Bool = false) {
            self.force = force
            self.move = move
        }
    }

    /// What has to be known of storage before the plan is certain.
    package struct Question: Hashable, Sendable {
        package enum Subject: Hashable, Sendable {
            /// Whether the collection has records where it is.
            case occupancy
            /// Whether there are records of that name where it is to be moved to.
            case obstacle
        }

        package var subject: Subject
        package var name: [UInt8]
        package var place: CollectionPlace
        /// Places of the collection's own records.
        package var known: [CollectionPlace]
    }

    /// What is known of storage.
    package struct Facts: Sendable {
        package var occupancy: [[UInt8]: Occupancy] = [:]
        package var obstacles: [[UInt8]: CollectionPlace] = [:]

        package init() {}
    }

    package private(set) var transitions: [Catalog.Transition] = []
    package private(set) var refusals: [(name: [UInt8], refusal: PlacementRefusal)] = []
    package private(set) var questions: [Question] = []
    /// The collections that are to be moved from now on.
    package private(set) var moves: [[UInt8]] = []
    /// The collections whose move is cancelled, or turned to another place.
    package private(set) var cancellations: [[UInt8]] = []

    /// - Parameters:
    ///   - entries: of the collections that may change.
    ///   - backends: the names of those of the configuration.
    ///   - shared: of these, those to which others write too.
    package init(
        _ entries: [[UInt8]: Catalog.Entry], _ rules: CollectionRules, backends: Set<String>, shared: Set<String>,
        _ options: Options, _ facts: Facts = Facts()
    ) {
        // Those that are where they are wanted, which are most, stay as they are.
        let concerned = entries.filter { name, entry in
            guard case .resident(let place) = entry.placement.state else { return true }
            return rules.rule(for: name.span)?.place != place
        }
        for (name, entry) in concerned.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let rule = rules.rule(for: name.span)
            var wish = Wish(
                rule?.place, force: options.force, move: options.move || rule?.moves ?? false,
                shared: shared, hasFeed: rule?.remembersChanges ?? false)
            if let authority = entry.placement.authority { wish.hasSource = backends.contains(authority.backend) }
            ask(name, entry.placement, wish)
            wish.occupancy = facts.occupancy[name] ?? .unknown
            wish.obstacle = facts.obstacles[name]
            switch entry.placement.next(.want(wish)) {
            case .same: break
            case .to(let placement): append(name, entry, placement)
            case .refused(let refusal): refusals.append((name, refusal))
            }
        }
    }

    private mutating func append(_ name: [UInt8], _ entry: Catalog.Entry, _ placement: Placement) {
        transitions.append(Catalog.Transition(name, from: entry, to: placement))
        let (former, next) = (entry.placement.destination, placement.destination)
        if former != nil { cancellations.append(name) }
        if next != nil { moves.append(name) }
    }

    /// A fact is asked for where it makes a difference.
    private mutating func ask(_ name: [UInt8], _ placement: Placement, _ wish: Wish) {
        guard let authority = placement.authority else { return }
        var empty = wish
        empty.occupancy = .empty
        if placement.next(.want(empty)) != placement.next(.want(wish)) {
            questions.append(Question(subject: .occupancy, name: name, place: authority, known: []))
        }
        // What is still to be removed there is ours, and is removed before the move looks for records.
        if let wanted = wish.place, placement.isBlocked(wanted) { return }
        var obstructed = wish
        obstructed.obstacle = wish.place
        if let wanted = wish.place, placement.next(.want(obstructed)) != placement.next(.want(wish)) {
            questions.append(
                Question(subject: .obstacle, name: name, place: wanted, known: placement.kept + placement.obsolete))
        }
    }
}

extension Plan.Question {
    /// Whether a collection has records where it is, and how many.
    package init(occupancyOf name: [UInt8], in place: CollectionPlace) {
        self.init(subject: .occupancy, name: name, place: place, known: [])
    }
}

extension CollectionRules {
    /// The names, of those that are given, whose wanted place may differ by other rules: an exact name by lookup, a
    /// glob by matching.
    package func names(placedDifferentlyBy other: CollectionRules, among names: @autoclosure () -> [[UInt8]])
        -> Set<[UInt8]>
    {
        let (former, next) = (placements, other.placements)
        let changed =
            rules.filter { next[$0.pattern.text] != $0.place }
            + other.rules.filter {
                former[$0.pattern.text] != $0.place
            }
        var found = Set(changed.filter { !$0.pattern.isGlob }.map(\.pattern.literal))
        var globs = changed.map(\.pattern).filter(\.isGlob)
        // The order of globs decides between two with as many literals.
        let order = [self, other].map { $0.rules.map(\.pattern).filter(\.isGlob) }
        if order[0] != order[1] { globs = order[0] + order[1] }
        if !globs.isEmpty {
            for name in names() where globs.contains(where: { $0.matches(name.span) }) { found.insert(name) }
        }
        return found
    }

    /// The backends in which there may be a collection that other rules want elsewhere, or nowhere, whatever it is
    /// called.
    func backends(losingNamesBy other: CollectionRules) -> Set<String> {
        let (former, next) = (placements, other.placements)
        var changed = rules.filter { next[$0.pattern.text] != $0.place }
        // A glob that is new, or stands elsewhere, may take names from each that was there.
        let globs = rules.filter(\.pattern.isGlob)
        let otherGlobs = other.rules.filter(\.pattern.isGlob)
        if globs.map(\.pattern) != otherGlobs.map(\.pattern) { changed += globs }
        let lost = changed.filter { rule in
            rule.pattern.isGlob || other.rule(for: rule.pattern.literal.span)?.place != rule.place
        }
        // A new rule of one name takes that name from the glob that had it.
        let taken = other.rules.filter { !$0.pattern.isGlob && former[$0.pattern.text] == nil }.compactMap { rule in
            self.rule(for: rule.pattern.literal.span).flatMap { $0.place == rule.place ? nil : $0 }
        }
        return Set((lost + taken).map(\.backend))
    }

    private var placements: [String: CollectionPlace] {
        Dictionary(rules.map { ($0.pattern.text, $0.place) }) { first, _ in first }
    }
}
