import CRUDConfiguration
import CRUDModel
import CRUDStorage
import CRUDThreads

/// What becomes of the collections that a configuration puts elsewhere.
///
/// The catalog remembers where each collection lives and in which format. One that the configuration now maps
/// elsewhere, or nowhere, would look empty while its records lie where they were. If it has records it is moved, where
/// that is wanted; otherwise a start or reload under such a configuration is refused. It is also refused where a move
/// could not be completed, and where the records that a move has left behind would be served again.
struct PlacePlan {
    /// What the administrator wants of collections that hold records and change their place.
    struct Options: Sendable {
        /// Leave the records where they are.
        var force = false
        /// Move them. A rule can say so too.
        var move = false
    }

    /// The rules of the configuration, with the collections that are being moved where they are.
    let rules: CollectionRules
    /// Collections that are to be moved from now on.
    private(set) var moves: [CollectionCatalog.Entry] = []
    /// Why it is refused.
    private(set) var diagnostics: [ConfigurationDiagnostic] = []
    /// Collections whose move is cancelled.
    private(set) var cancellations: [[UInt8]] = []
    private let configuration: Configuration

    private enum Decision {
        case stays, follows, moves, cancels
        case refused(String)
    }

    /// - Parameter backends: in which records are looked for.
    init(
        _ configuration: Configuration, _ catalog: CollectionCatalog, _ backends: [Backend], _ options: Options
    ) {
        let check = PlaceCheck(configuration, backends, options)
        var places: [[UInt8]: CollectionPlace] = [:]
        for entry in catalog.entries.sorted(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
            switch check.decision(entry) {
            case .stays where entry.move == nil || entry.move?.state == .removing: break
            case .stays: places[entry.name] = entry.place
            case .follows: break
            case .moves:
                moves.append(entry)
                places[entry.name] = entry.place
            case .cancels: cancellations.append(entry.name)
            case .refused(let reason):
                let rule = configuration.collections.rule(for: entry.name.span)
                diagnostics.append(
                    configuration.diagnostic(
                        at: rule?.position ?? .start, "collection \(text(entry.name)) \(reason)"))
            }
        }
        rules = configuration.collections.placing(places)
        self.configuration = configuration
    }

    /// An error for each collection that is to be moved to a place where there are records already. A backend that is
    /// not available now is looked into when the move begins.
    func diagnostics(of backends: [Backend]) -> [ConfigurationDiagnostic] {
        moves.compactMap { entry in
            guard let rule = configuration.collections.rule(for: entry.name.span), entry.move == nil,
                let backend = backends.first(where: { $0.name == rule.backend }),
                case .some(.some(let place)) = try? backend.recordsInTheWay(
                    of: entry.name, to: rule.place, except: [entry.place] + entry.originals)
            else { return nil }
            return configuration.diagnostic(
                at: rule.position,
                "collection \(text(entry.name)) cannot be moved: there are records of that name in \(place)")
        }
    }

    /// Has the catalog remember what is to be done.
    func begin(_ catalog: CollectionCatalog) throws(SystemError) {
        for name in cancellations {
            try catalog.update(name) { $0.move = $0.move.flatMap { $0.state == .planned ? nil : $0.cancelled } }
        }
        for entry in moves {
            guard let rule = configuration.collections.rule(for: entry.name.span) else { continue }
            // What a cancelled move has not removed yet is used again.
            let state: Move.State = entry.move == nil ? .planned : .copying
            try catalog.update(entry.name) { $0.move = .init(destination: rule.place, state: state) }
        }
    }

    /// The names of the collections that are to be moved.
    var namesOfMoves: [String] { moves.map { text($0.name) } }

    /// Decides about single collections.
    private struct PlaceCheck {
        private let configuration: Configuration
        private let backends: [Backend]
        private let options: Options

        /// How long it may take to count the records of a collection.
        private static let timeout = Duration.seconds(30)

        init(
            _ configuration: Configuration, _ backends: [Backend], _ options: Options
        ) {
            self.configuration = configuration
            self.backends = backends
            self.options = options
        }

        func decision(_ entry: CollectionCatalog.Entry) -> Decision {
            let rule = configuration.collections.rule(for: entry.name.span)
            let place = rule?.place
            if let move = entry.move {
                if move.state != .removing, place == move.destination { return moving(entry, otherwise: .stays) }
                if place == entry.place { return move.state == .removing ? .stays : .cancels }
                if move.state == .removing, place == move.destination, mayMove(rule) {
                    return moving(entry, otherwise: .moves)
                }
                let way = "from \(entry.place) to \(move.destination)"
                return options.force
                    ? .follows
                    : .refused("is being moved \(way): wait for that, or cancel it by mapping it to \(entry.place)")
            }
            guard let place, let rule else { return place == entry.place ? .stays : orphan(entry, rule) }
            if place == entry.place { return .stays }
            if entry.originals.contains(place), !options.force {
                return .refused(
                    "was moved from \(place) to \(entry.place); the originals are older than the records there, see "
                        + "crudctl drop --moved")
            }
            return orphan(entry, rule)
        }

        private func mayMove(_ rule: CollectionRule?) -> Bool { rule.map { $0.moves || options.move } ?? false }

        /// A move needs the backend that it comes from.
        private func moving(_ entry: CollectionCatalog.Entry, otherwise decision: Decision) -> Decision {
            if configuration.backends.contains(where: { $0.name == entry.place.backend }) { return decision }
            return .refused("is to be moved from \(entry.place), which has to stay in the file until that is over")
        }

        /// A collection that is mapped elsewhere, or nowhere.
        private func orphan(_ entry: CollectionCatalog.Entry, _ rule: CollectionRule?) -> Decision {
            if options.force, !mayMove(rule) || rule.map({ entry.originals.contains($0.place) }) ?? false {
                return .follows
            }
            let backend = backends.first { $0.name == entry.place.backend }
            let hasRecords = try? backend?.hasRecords(entry.name, entry.place.format, within: Self.timeout)
            if hasRecords == false { return .follows }
            if mayMove(rule) { return moving(entry, otherwise: .moves) }
            let known = hasRecords == nil ? nil : backend
            let records = known?.countText(of: entry, within: Self.timeout) ?? "an unknown number of records"
            let place = rule.map { "now mapped to \($0.place)" } ?? "now mapped nowhere"
            let isThere = configuration.backends.contains { $0.name == entry.place.backend }
            let way =
                switch (rule, isThere) {
                case (nil, _): "drop the collection first"
                case (_, true): "--move moves them"
                case (_, false): "with backend \(entry.place.backend) in the file again --move moves them"
                }
            return .refused(
                "has \(records) in \(entry.place) and is \(place), which orphans them; \(way), --force does it all the "
                    + "same")
        }
    }
}

/// A name as it was written.
private func text(_ name: [UInt8]) -> String { String(decoding: name, as: UTF8.self) }

extension CollectionCatalog.PlannedMove {
    /// The move when it has been cancelled.
    fileprivate var cancelled: Self {
        var move = self
        move.state = .removing
        return move
    }
}
