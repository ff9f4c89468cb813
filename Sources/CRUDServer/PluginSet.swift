package import CRUDConfiguration
import CRUDPluginHost

/// The plugins that a configuration names, loaded, and their options found right.
package struct PluginSet {
    /// Each once, in the order in which the configuration first names them.
    private(set) var all: [Plugin] = []
    /// What is to be known of plugins that run all the same, a line each.
    private(set) var warnings: [String] = []
    private var byBackend: [String: Plugin] = [:]

    /// Loads the plugins and has them check their options; no storage is touched.
    ///
    /// - Throws: `InvalidConfiguration` with every fault and its place in the file.
    package init(_ configuration: Configuration) throws(InvalidConfiguration) {
        var faults = Self.unsupported(configuration)
        for backend in configuration.backends {
            guard case .plugin(let name) = backend.implementation, backend.isolation == .inline else { continue }
            do throws(PluginFault) {
                let file = try PluginFile(named: name, in: configuration.pluginDirectories, sha256: backend.sha256)
                let plugin = try load(file)
                byBackend[backend.name] = plugin
                plugin.check(backend, configuration, &faults)
            } catch {
                faults.append(configuration.fault(at: backend.implementationPosition, error.description))
            }
        }
        if !faults.isEmpty { throw InvalidConfiguration(faults) }
    }

    /// The plugin of a backend; there is one for each backend of the configuration.
    subscript(backend: BackendConfiguration) -> Plugin? { byBackend[backend.name] }

    /// Loads a file, or finds it loaded already, be it as it was before.
    private mutating func load(_ file: PluginFile) throws(PluginFault) -> Plugin {
        let plugin = try Plugin.load(file)
        if all.contains(where: { $0.path == plugin.path }) { return plugin }
        all.append(plugin)
        if plugin.isOlder(than: file) {
            warnings.append(
                "plugin \(plugin.name): \(plugin.path) is another file now; the one that was loaded runs until the "
                    + "daemon is started again")
        }
        return plugin
    }

    /// What the format of the file allows and this version does not do yet.
    private static func unsupported(_ configuration: Configuration) -> [ConfigurationFault] {
        configuration.backends.filter { $0.isolation == .process }.map {
            configuration.fault(
                at: $0.implementationPosition,
                "backend \($0.name): plugins run inside the daemon in this version of crudd")
        }
    }
}

extension Plugin {
    fileprivate func check(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ faults: inout [ConfigurationFault]
    ) {
        do throws(PluginFailure) {
            try check(options: backend.options)
        } catch {
            faults.append(configuration.fault(of: error, opening: backend))
        }
    }
}

extension Configuration {
    func fault(at position: SourcePosition, _ message: String) -> ConfigurationFault {
        ConfigurationFault(file: file, position: position, message: message)
    }

    /// A backend that can never be opened as it is defined.
    func fault(of failure: PluginFailure, opening backend: BackendConfiguration) -> ConfigurationFault {
        fault(at: backend.position(ofOption: failure.pointer), "backend \(backend.name): \(failure.message)")
    }
}
