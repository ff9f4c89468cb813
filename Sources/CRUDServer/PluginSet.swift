package import CRUDConfiguration
import CRUDPluginHost
package import Logging

/// The plugins that a configuration names, loaded, and their options found right.
package struct PluginSet {
    /// Each once, in the order in which the configuration first names them.
    private(set) var all: [Plugin] = []
    private var byBackend: [String: Plugin] = [:]

    /// Loads the plugins, or has a child process load them, and has them check their options; no storage is touched.
    ///
    /// - Parameter logger: where children speak while they are asked, and where it stands that one could not be.
    /// - Throws: ``StartFailure`` with every fault and its place in the file.
    package init(_ configuration: Configuration, logger: Logger) throws(StartFailure) {
        var faults = Self.unsupported(configuration)
        for backend in configuration.backends {
            do throws(PluginFault) {
                switch backend.isolation {
                case .inline: try load(backend, configuration, &faults)
                case .process: try ask(backend, configuration, logger, &faults)
                }
            } catch {
                faults.append(configuration.fault(at: backend.implementationPosition, error.description))
            }
        }
        if !faults.isEmpty { throw StartFailure(.configuration, lines: faults) }
    }

    private mutating func load(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ faults: inout [String]
    ) throws(PluginFault) {
        guard case .plugin(let name) = backend.implementation else { return }
        let plugin = try load(
            PluginFile(named: name, in: configuration.pluginDirectories, sha256: backend.sha256))
        byBackend[backend.name] = plugin
        do throws(PluginFailure) {
            try plugin.check(options: backend.options)
        } catch {
            faults.append(configuration.fault(in: backend, error))
        }
    }

    /// Has a child of a backend's own load its plugin, or be it, and check the options.
    private mutating func ask(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ logger: Logger, _ faults: inout [String]
    ) throws(PluginFault) {
        let program: ChildCommand.Program =
            switch backend.implementation {
            case .plugin(let name): .plugin(name, directories: configuration.pluginDirectories)
            case .command(let words): .executable(words)
            }
        let command = ChildCommand(
            backend: backend.name, program: program, sha256: backend.sha256,
            limits: ChildCommand.Limits(
                memoryBytes: backend.limits.memoryBytes, callTimeout: backend.limits.callTimeout,
                frameBytes: 2 * configuration.limits.frameBytes),
            home: configuration.stateDirectory, launcher: try ChildCommand.findLauncher())
        do throws(PluginFailure) {
            let (plugin, doubt) = try Plugin.inChild(command, options: backend.options, logger: logger)
            byBackend[backend.name] = plugin
            if !all.contains(where: { $0.path == plugin.path }) { all.append(plugin) }
            if let doubt { logger.error("backend \(backend.name): \(doubt)") }
        } catch {
            faults.append(configuration.fault(in: backend, error))
        }
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
        configuration.collections.rules.filter { $0.format != .json }.map {
            configuration.fault(at: $0.position, "format \($0.format.rawValue) is not in this version of crudd")
        }
    }
}

extension Configuration {
    func fault(at position: SourcePosition, _ message: String) -> String {
        "\(file):\(position.line):\(position.column): \(message)"
    }

    /// A plugin's complaint about a backend: at the option that it names, else where the plugin is named.
    fileprivate func fault(in backend: BackendConfiguration, _ failure: PluginFailure) -> String {
        let isAboutOptions = failure.isAboutOptions
        let position =
            isAboutOptions ? backend.position(ofOption: failure.pointer) : backend.implementationPosition
        return fault(at: position, "backend \(backend.name): \(failure.message)")
    }
}
