import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDStorage

extension Plan {
    /// What a configuration makes of collections, with the facts that this depends on.
    ///
    /// - Parameter backends: those that are open.
    init(
        _ configuration: Configuration, _ entries: [[UInt8]: Catalog.Entry], _ backends: [Backend], _ options: Options
    ) {
        let names = Set(configuration.backends.map(\.name))
        let plan = Plan(entries, configuration.collections, backends: names, options)
        guard !plan.questions.isEmpty else {
            self = plan
            return
        }
        let open = Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
        let facts = Probes.facts(for: plan.questions, open)
        self.init(entries, configuration.collections, backends: names, options, facts)
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
