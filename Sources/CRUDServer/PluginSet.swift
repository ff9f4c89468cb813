package import CRUDConfiguration
import CRUDCore
import CRUDPluginHost
package import Logging

/// The plugins that a configuration names, loaded, and their options found right.
package struct PluginSet {
    /// Each once, in the order in which the configuration first names them.
    private(set) var all: [Plugin] = []
    /// What is to be known of plugins that run all the same, a line each.
    private(set) var warnings: [String] = []
    /// The backends whose child died or gave no answer, so that their options have not been checked, and why.
    private(set) var unanswered: [ConfigurationFault] = []
    private var byBackend: [String: Plugin] = [:]

    /// Loads the plugins, or has a child process load them, and has them check their options; no storage is touched.
    ///
    /// - Parameters:
    ///   - loopCount: how many event loops read from backends.
    ///   - logger: where children speak while they are asked, and where it stands that one could not be.
    /// - Throws: `InvalidConfiguration` with every fault and its place in the file.
    package init(
        _ configuration: Configuration, loopCount: Int, logger: Logger
    ) throws(InvalidConfiguration) {
        var faults: [ConfigurationFault] = []
        for backend in configuration.backends {
            do throws(PluginFault) {
                switch backend.isolation {
                case .inline: try load(backend, configuration, &faults)
                case .process: try ask(backend, configuration, loopCount, logger, &faults)
                }
            } catch {
                faults.append(configuration.fault(at: backend.implementationPosition, error.description))
            }
        }
        if !faults.isEmpty { throw InvalidConfiguration(faults) }
    }

    private mutating func load(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ faults: inout [ConfigurationFault]
    ) throws(PluginFault) {
        guard case .plugin(let name) = backend.implementation else { return }
        let plugin = try load(
            PluginFile(named: name, in: configuration.pluginDirectories, sha256: backend.sha256))
        byBackend[backend.name] = plugin
        do throws(PluginFailure) {
            try plugin.check(options: backend.options)
        } catch {
            faults.append(configuration.fault(of: error, opening: backend))
        }
    }

    /// The largest frame that a child has reason to send: a mebibyte of records, after which a reply goes on in another
    /// frame, and one more record in the format that takes the most room, twice for what quoting adds.
    private static func childFrameBytes(_ limits: Configuration.Limits) -> Int {
        (1 << 20) + 2 * max(limits.frameBytes, Codec(.xml).maximumStoredBytes(ofItem: limits.itemBytes))
    }

    /// Has a child of a backend's own load its plugin, or be it, and check the options.
    private mutating func ask(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ loopCount: Int, _ logger: Logger,
        _ faults: inout [ConfigurationFault]
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
                frameBytes: Self.childFrameBytes(configuration.limits)),
            loopCount: loopCount, home: configuration.stateDirectory, launcher: try ChildCommand.findLauncher())
        do throws(PluginFailure) {
            let (plugin, doubt) = try Plugin.inChild(command, options: backend.options, logger: logger)
            byBackend[backend.name] = plugin
            if !all.contains(where: { $0.path == plugin.path }) { all.append(plugin) }
            if let doubt {
                warnings.append("backend \(backend.name): \(doubt)")
                unanswered.append(
                    configuration.fault(
                        at: backend.implementationPosition, "backend \(backend.name) could not be checked: \(doubt)"))
            }
        } catch {
            faults.append(
                error.isAboutOptions
                    ? configuration.fault(of: error, opening: backend)
                    : configuration.fault(
                        at: backend.implementationPosition, "backend \(backend.name): \(error.message)"))
        }
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
