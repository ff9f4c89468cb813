import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDStorage

extension Plan {
    /// What a reload makes of the collections that may change by it.
    init(from current: Service, to configuration: Configuration, _ plugins: PluginSet, _ options: Options) {
        let catalog = current.control.catalog
        let names = current.rules.names(
            placedDifferentlyBy: configuration.collections, among: Array(catalog.entries.keys)
        ).union(catalog.restless)
        let entries = Dictionary(uniqueKeysWithValues: names.map { ($0, catalog.entry($0)) })
        self.init(configuration, entries, plugins, current.backends, options)
    }

    /// What a configuration makes of collections, with the facts that this depends on.
    ///
    /// - Parameters:
    ///   - backends: those that are open.
    ///   - empty: the names of those that have no storage yet.
    init(
        _ configuration: Configuration, _ entries: [[UInt8]: Catalog.Entry], _ plugins: PluginSet,
        _ backends: [Backend], empty: Set<String> = [], _ options: Options
    ) {
        let names = Set(configuration.backends.map(\.name))
        let plan = Plan(entries, configuration.collections, backends: names, shared: plugins.shared, options)
        guard !plan.questions.isEmpty else {
            self = plan
            return
        }
        let open = Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
        var facts = Probes.facts(for: plan.questions.filter { !empty.contains($0.place.backend) }, open)
        for question in plan.questions where empty.contains(question.place.backend) && question.subject == .occupancy {
            facts.occupancy[question.name] = .empty
        }
        self.init(entries, configuration.collections, backends: names, shared: plugins.shared, options, facts)
    }
}

extension Configuration {
    /// An error for each collection that must not become what the configuration wants.
    func diagnostics(
        of refusals: [(name: [UInt8], refusal: PlacementRefusal)]
    ) -> [ConfigurationDiagnostic] {
        refusals.map { name, refusal in
            let position = collections.rule(for: name.span)?.position ?? .start
            return diagnostic(
                at: position, "collection \(String(decoding: name, as: UTF8.self)) \(refusal.message)")
        }
    }
}
