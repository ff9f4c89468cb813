import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage

/// The records that backends hold whose definition a reload changes.
///
/// A backend of the same name may be another storage afterwards: one with another plugin, path or address. Its
/// collections would look empty while their records lie where they were. So a reload is refused if a collection has
/// records before it and none after it, unless the administrator insists.
struct HeldRecords {
    /// With the backends' new definitions.
    private var collections: [Held] = []
    private let configuration: Configuration

    private struct Held {
        let definition: BackendConfiguration
        let name: [UInt8]
        let place: CollectionPlace
        let count: String
    }

    /// How long it may take to look for the records of a collection. Where that cannot be told, nothing is refused.
    private static let timeout = Duration.seconds(10)

    /// To be made while the old backends are open and drained.
    init(_ plan: BackendPlan, _ current: Service, _ configuration: Configuration) {
        self.configuration = configuration
        for definition in plan.coming {
            guard let backend = plan.leaving.first(where: { $0.definition.name == definition.name })?.backend
            else { continue }
            for (name, entry) in current.control.catalog.entries {
                guard let place = entry.placement.authority, place.backend == definition.name else { continue }
                guard (try? backend.hasRecords(name, place.format, within: Self.timeout)) == true else { continue }
                let count = Occupancy.records(try? backend.count(name, place.format, within: Self.timeout)).text
                collections.append(Held(definition: definition, name: name, place: place, count: count))
            }
        }
    }

    /// An error for each collection whose records may go with the backend that is to be closed: its plugin is not
    /// durable, as one that keeps them in memory.
    func diagnosticsBeforeClosing(_ plan: BackendPlan) -> [ConfigurationDiagnostic] {
        let volatile = plan.leaving.filter { !$0.backend.plugin.capabilities.contains(.durable) }.map(\.definition.name)
        return diagnostics(
            "which may be lost when that is closed for its new definition, as its plugin is not durable"
        ) { volatile.contains($0.definition.name) }
    }

    /// An error for each collection of which the backend has no records by its new definition.
    func diagnostics(of backends: [Backend]) -> [ConfigurationDiagnostic] {
        diagnostics(
            "and would have none there by its new definition, which orphans them; give the new storage another name, "
                + "so that --move can move them there"
        ) { held in
            let backend = backends.first { $0.name == held.definition.name }
            return (try? backend?.hasRecords(held.name, held.place.format, within: Self.timeout)) == false
        }
    }

    private func diagnostics(_ consequence: String, where isLost: (Held) -> Bool) -> [ConfigurationDiagnostic] {
        collections.filter(isLost).map { held in
            let name = String(decoding: held.name, as: UTF8.self)
            return configuration.diagnostic(
                at: held.definition.position,
                "collection \(name) has \(held.count) in \(held.place), \(consequence); --force does it all the same")
        }
    }
}
