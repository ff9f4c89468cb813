import CRUDConfiguration
import CRUDPluginHost
import CRUDStorage

/// What a reload does with each backend.
struct BackendPlan {
    /// Those that keep serving as they are, by name.
    private(set) var staying: [String: Backend] = [:]
    /// To be closed: what the new configuration lacks or defines differently.
    private(set) var leaving: [(definition: BackendConfiguration, backend: Backend)] = []
    /// To be opened: what the old configuration lacks or defines differently.
    private(set) var coming: [BackendConfiguration] = []
    private(set) var changes: [String] = []

    init(from current: Service, to new: Configuration, _ plugins: PluginSet) {
        let served = Dictionary(uniqueKeysWithValues: current.backends.map { ($0.name, $0) })
        let newNames = Set(new.backends.map(\.name))
        for old in current.configuration.backends where !newNames.contains(old.name) {
            if let backend = served[old.name] { leaving.append((old, backend)) }
            changes.append("backend \(old.name): removed")
        }
        for definition in new.backends {
            guard let old = current.configuration.backends.first(where: { $0.name == definition.name }),
                let backend = served[definition.name]
            else {
                coming.append(definition)
                changes.append("backend \(definition.name): added")
                continue
            }
            var keys = old.changedKeys(in: definition)
            let frameBytes = (current.configuration.limits.frameBytes, new.limits.frameBytes)
            // A child learns at its start how large its frames may be.
            if definition.isolation == .process, frameBytes.0 != frameBytes.1 { keys.append("limits.frame_bytes") }
            if keys.isEmpty, plugins[definition]?.path != backend.plugin.path { keys = ["plugin file"] }
            if keys.isEmpty {
                staying[definition.name] = backend
                if old.cachesRecords != definition.cachesRecords {
                    changes.append("backend \(definition.name): cache is now \(definition.cachesRecords)")
                }
            } else {
                leaving.append((old, backend))
                coming.append(definition)
                changes.append("backend \(definition.name): \(keys.joined(separator: ", ")) changed")
            }
        }
    }

    /// Notes what has become of a new backend.
    mutating func note(_ change: String) {
        changes.append(change)
    }
}
