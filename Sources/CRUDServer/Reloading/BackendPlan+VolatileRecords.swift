import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage

extension BackendPlan {
    /// How long it may take to look for the records of a collection. Where that cannot be told, nothing is refused.
    private static let timeout = Duration.seconds(10)

    /// An error for each collection whose records may go with a backend that is closed for its new definition, as those
    /// in memory do. To be asked while the backends are open and drained.
    func volatileRecords(_ current: Service, _ configuration: Configuration) -> [ConfigurationDiagnostic] {
        coming.flatMap { definition -> [ConfigurationDiagnostic] in
            guard let backend = leaving.first(where: { $0.definition.name == definition.name })?.backend,
                backend.isVolatile
            else { return [] }
            return current.control.catalog.entries(in: definition.name).compactMap { name, entry in
                guard let place = entry.placement.authority, place.backend == definition.name,
                    (try? backend.hasRecords(name, place.format, within: Self.timeout)) == true
                else { return nil }
                let count = Occupancy.records(try? backend.count(name, place.format, within: Self.timeout)).text
                return configuration.diagnostic(
                    at: definition.position,
                    "collection \(String(decoding: name, as: UTF8.self)) has \(count) in \(place), which may be lost "
                        + "when that is closed for its new definition, as that is not durable; --force does it "
                        + "all the same")
            }
        }
    }
}

extension Backend {
    /// Whether its storage may end with being closed. One that can be told from others outlives that, even if its
    /// options let it lose the latest writes with the machine.
    fileprivate var isVolatile: Bool {
        guard plugin.capabilities.contains(.durable) else { return true }
        return !capabilities.contains(.durable) && storageIdentity?.isEmpty == true
    }
}
