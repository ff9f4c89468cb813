import CRUDConfiguration
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDStorage

/// What a reload would do, found out without doing any of it: no backend is opened, closed or made to wait, and nothing
/// is recorded. What only the opening of a new backend shows is not known.
struct DryRun {
    private let changes: ReloadChanges
    /// Why the reload would be refused.
    private let refusals: [String]
    private let moves: [Move]
    private let orphans: [(name: [UInt8], place: CollectionPlace, records: Int?)]
    private let indexes: [Index]
    /// How many records collections have, where that could be told.
    private let counts: [[UInt8]: Occupancy]
    /// What has been found out about collections that get another format.
    private var formats: [[UInt8]: FormatCheck] = [:]

    /// How long all checks of formats may take together.
    private static let checkTimeout = Duration.seconds(5)

    private struct Move {
        let name: [UInt8]
        let from: CollectionPlace
        let to: CollectionPlace
    }

    private struct Index {
        let name: [UInt8]
        let property: String
    }

    init(
        of configuration: Configuration, after current: Service, _ plugins: PluginSet, _ fixed: FixedSettings,
        _ options: Plan.Options
    ) {
        let unsurveyed = Reload.awaitSurveys(from: current, to: configuration, options)
        let backendPlan = BackendPlan(from: current, to: configuration, plugins)
        let plan = Plan(from: current, to: configuration, plugins, options)
        changes = ReloadChanges(from: current, to: configuration, backendPlan, plan, plugins, fixed)
        let volatile = options.force ? [] : backendPlan.volatileRecords(current, configuration)
        refusals = unsurveyed + (configuration.diagnostics(of: plan.refusals) + volatile).map(\.description)
        let moving = Set(plan.moves)
        moves = plan.transitions.compactMap { transition in
            guard moving.contains(transition.name), let from = transition.placement.authority,
                let to = transition.placement.destination
            else { return nil }
            return Move(name: transition.name, from: from, to: to)
        }
        orphans = Self.orphans(
            options.force ? Plan(from: current, to: configuration, plugins, .init(move: options.move)) : plan)
        indexes = Self.indexes(from: current, to: configuration, without: moving)
        counts = Self.counts(of: Set(moves.map(\.name) + indexes.map(\.name)), current)
    }

    /// Whether collections get another format, so that it may not hold their records.
    var changesFormats: Bool { moves.contains { $0.from.format != $0.to.format } }

    /// Finds out which records another format cannot hold, by reading them: some seconds, on the calling thread.
    mutating func checkFormats(_ current: Service) {
        let deadline = ContinuousClock.now + Self.checkTimeout
        for move in moves where move.from.format != move.to.format {
            guard let backend = current.control.backend(move.from.backend) else { continue }
            formats[move.name] = FormatCheck(
                of: move.name, in: backend, from: move.from.format, to: move.to.format, until: deadline)
        }
    }

    /// What `plan`, which must not orphan anything, refuses to.
    private static func orphans(_ plan: Plan) -> [(name: [UInt8], place: CollectionPlace, records: Int?)] {
        plan.refusals.compactMap { name, refusal in
            guard case .orphans(let occupancy, let place, _, _) = refusal else { return nil }
            if case .records(let count) = occupancy { return (name, place, count) }
            return (name, place, nil)
        }
    }

    /// The indexes that collections get which stay where they are.
    private static func indexes(
        from current: Service, to configuration: Configuration, without moving: Set<[UInt8]>
    ) -> [Index] {
        let entries = current.control.catalog.entries.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return entries.flatMap { name, entry -> [Index] in
            guard !moving.contains(name), let place = entry.placement.authority,
                let rule = configuration.collections.rule(for: name.span), rule.place == place
            else { return [] }
            let former = current.rules.rule(for: name.span)?.indexes ?? []
            return rule.indexes.filter { !former.contains($0) }.map { Index(name: name, property: $0) }
        }
    }

    private static func counts(of names: Set<[UInt8]>, _ current: Service) -> [[UInt8]: Occupancy] {
        let questions = names.sorted { $0.lexicographicallyPrecedes($1) }.compactMap { name in
            current.control.catalog.entry(name).placement.authority.map {
                Plan.Question(occupancyOf: name, in: $0)
            }
        }
        let backends = Dictionary(uniqueKeysWithValues: current.backends.map { ($0.name, $0) })
        return Probes.facts(for: questions, backends).occupancy
    }

    /// The result of `daemon.reload` with `dryRun`.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            changes.writeMembers(to: &result)
            result.member("refusals", strings: refusals)
            result.member("moving", objects: moves) { move, members in
                members.member(collection: move.name)
                members.key("from")
                members.object { $0.members(of: move.from) }
                members.key("to")
                members.object { $0.members(of: move.to) }
                members.member(records: count(move.name))
                if let check = formats[move.name] { members.members(of: check) }
            }
            result.member("orphaned", objects: orphans) { orphan, members in
                members.member(collection: orphan.name)
                members.members(of: orphan.place)
                members.member(records: orphan.records)
            }
            result.member("indexing", objects: indexes) { index, members in
                members.member(collection: index.name)
                members.member("property", index.property)
                members.member(records: count(index.name))
            }
            result.member("losses", strings: changes.losses)
        }
        return writer.bytes
    }

    private func count(_ name: [UInt8]) -> Int? {
        switch counts[name] {
        case .empty: 0
        case .records(let count): count
        case .unknown, nil: nil
        }
    }
}

extension JSONWriter {
    fileprivate mutating func member(collection name: [UInt8]) {
        key("collection")
        string(utf8: name)
    }

    fileprivate mutating func members(of check: FormatCheck) {
        key("format")
        object { members in
            members.member("checked", check.checked)
            members.member("complete", check.isComplete)
            members.member("refused", check.refused)
            members.member("first", objects: check.first) { record, members in
                members.key("id")
                members.string(utf8: record.id)
                members.member("reason", record.reason)
            }
        }
    }

    fileprivate mutating func member(records count: Int?) {
        if let count { member("records", count) }
    }
}
