import CRUDConfiguration
import CRUDModel
import CRUDPluginHost
import CRUDStorage

/// The records that backends hold whose definition a reload changes.
///
/// A backend of the same name may be another storage afterwards: one with another plugin, path or address. Its
/// collections would look empty while their records lie where they were. So a reload is refused if a collection has
/// records before it and none after it, unless the administrator insists.
struct HeldRecords {
    /// With the backends' new definitions.
    private var collections: [(definition: BackendConfiguration, entry: CollectionCatalog.Entry, count: String)] = []
    private let configuration: Configuration

    /// How long it may take to look for the records of a collection. Where that cannot be told, nothing is refused.
    private static let timeout = Duration.seconds(10)

    /// To be made while the old backends are open and drained.
    init(_ plan: BackendPlan, _ current: Service, _ configuration: Configuration) {
        self.configuration = configuration
        for definition in plan.coming {
            guard let backend = plan.leaving.first(where: { $0.definition.name == definition.name })?.backend
            else { continue }
            for entry in current.catalog.entries where entry.place.backend == definition.name {
                let (name, format) = (entry.name, entry.place.format)
                guard (try? backend.hasRecords(name, format, within: Self.timeout)) == true else { continue }
                collections.append((definition, entry, backend.countText(of: entry, within: Self.timeout)))
            }
        }
    }

    /// An error for each collection whose records may go with the backend that is to be closed: its plugin is not
    /// durable, as one that keeps them in memory.
    func diagnosticsBeforeClosing(_ plan: BackendPlan) -> [ConfigurationDiagnostic] {
        let volatile = plan.leaving.filter { !$0.backend.plugin.capabilities.contains(.durable) }.map(\.definition.name)
        return diagnostics(
            "which may be lost when that is closed for its new definition, as its plugin is not durable"
        ) { definition, _ in
            volatile.contains(definition.name)
        }
    }

    /// An error for each collection of which the backend has no records by its new definition.
    func diagnostics(of backends: [Backend]) -> [ConfigurationDiagnostic] {
        diagnostics(
            "and would have none there by its new definition, which orphans them; give the new storage another name, "
                + "so that --move can move them there"
        ) { definition, entry in
            let backend = backends.first { $0.name == definition.name }
            return (try? backend?.hasRecords(entry.name, entry.place.format, within: Self.timeout)) == false
        }
    }

    private func diagnostics(
        _ consequence: String, where isLost: (BackendConfiguration, CollectionCatalog.Entry) -> Bool
    ) -> [ConfigurationDiagnostic] {
        collections.filter { isLost($0.definition, $0.entry) }.map { definition, entry, count in
            let name = String(decoding: entry.name, as: UTF8.self)
            return configuration.diagnostic(
                at: definition.position,
                "collection \(name) has \(count) in \(entry.place), \(consequence); --force does it all the same")
        }
    }
}

extension Backend {
    /// How many records a collection has in its place, in words.
    func countText(of entry: CollectionCatalog.Entry, within timeout: Duration) -> String {
        (try? count(entry.name, entry.place.format, within: timeout)).map { "\($0) record\($0 == 1 ? "" : "s")" }
            ?? "an unknown number of records"
    }
}
