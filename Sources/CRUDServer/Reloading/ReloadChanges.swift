import CRUDConfiguration
import CRUDJSON
import CRUDPlacement

/// What a reload has changed, or would change.
struct ReloadChanges: Sendable {
    /// A line for each change.
    var lines: [String]
    /// A line for everybody who may do more than before.
    var gains: [String]
    /// A line for everybody who may do less.
    var losses: [String]
    /// The names of the collections whose move has begun.
    var moves: [[UInt8]]
    /// The names of the collections whose move has been cancelled, or turned to another place.
    var cancelled: [[UInt8]]

    init(
        from former: Service, to configuration: Configuration, _ backendPlan: BackendPlan, _ plan: Plan,
        _ plugins: PluginSet, _ fixed: FixedSettings
    ) {
        let changes = former.configuration.changes(to: configuration)
        lines = backendPlan.changes + changes + fixed.changes(in: configuration) + plugins.warnings
        let access = AccessComparison(
            from: former.configuration.access, to: configuration.access,
            collections: former.control.catalog.entries.keys)
        gains = access.gains.map { "access: \($0)" }
        losses = access.losses.map { "access: \($0)" }
        moves = plan.moves
        cancelled = plan.cancellations
    }

    /// The result of `daemon.reload`.
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writeMembers(to: &$0) }
        return writer.bytes
    }

    func writeMembers(to result: inout JSONWriter) {
        result.member("changes", strings: lines + gains)
        result.member("moves", strings: moves.map { String(decoding: $0, as: UTF8.self) })
        result.member("cancelled", strings: cancelled.map { String(decoding: $0, as: UTF8.self) })
    }
}
