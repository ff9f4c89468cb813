package import CRUDConfiguration
import CRUDPluginHost

/// The plugins that a configuration names, loaded, and their options found right.
package struct PluginSet {
    /// Each once, in the order in which the configuration first names them.
    private(set) var all: [Plugin] = []
    private var byBackend: [String: Plugin] = [:]

    /// Loads the plugins and has them check their options; no storage is touched.
    ///
    /// - Throws: ``StartFailure`` with every fault and its place in the file.
    package init(_ configuration: Configuration) throws(StartFailure) {
        var faults = Self.unsupported(configuration)
        for backend in configuration.backends {
            guard case .plugin(let name) = backend.implementation, backend.isolation == .inline else { continue }
            do throws(PluginFault) {
                let file = try PluginFile(named: name, in: configuration.pluginDirectories, sha256: backend.sha256)
                let plugin = try load(file)
                byBackend[backend.name] = plugin
                plugin.check(backend, configuration.file, &faults)
            } catch {
                faults.append(configuration.fault(at: backend.implementationPosition, error.description))
            }
        }
        if !faults.isEmpty { throw StartFailure(.configuration, lines: faults) }
    }

    /// The plugin of a backend; there is one for each backend of the configuration.
    subscript(backend: BackendConfiguration) -> Plugin? { byBackend[backend.name] }

    /// Loads a file, or finds it loaded already for another backend.
    private mutating func load(_ file: PluginFile) throws(PluginFault) -> Plugin {
        if let loaded = all.first(where: { $0.path == file.path }) { return loaded }
        let plugin = try Plugin.load(file)
        all.append(plugin)
        return plugin
    }

    /// What the format of the file allows and this version does not do yet.
    private static func unsupported(_ configuration: Configuration) -> [String] {
        configuration.backends.filter { $0.isolation == .process }.map {
            configuration.fault(
                at: $0.implementationPosition,
                "backend \($0.name): plugins run inside the daemon in this version of crudd")
        }
    }
}

extension Plugin {
    fileprivate func check(_ backend: BackendConfiguration, _ file: String, _ faults: inout [String]) {
        do throws(PluginFailure) {
            try check(options: backend.options)
        } catch {
            let position = backend.position(ofOption: error.pointer)
            faults.append("\(file):\(position.line):\(position.column): backend \(backend.name): \(error.message)")
        }
    }
}

extension Configuration {
    func fault(at position: SourcePosition, _ message: String) -> String {
        "\(file):\(position.line):\(position.column): \(message)"
    }
}
