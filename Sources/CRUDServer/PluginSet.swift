import CRUDConfiguration
import CRUDFormats
import CRUDModel
import CRUDPluginHost
import Logging

/// The plugins that a configuration names, loaded, and the options of its backends checked by them.
struct PluginSet {
    /// Each once, in the order in which the configuration first names them.
    private(set) var all: [Plugin] = []
    /// What an administrator should know of plugins that run all the same, a line each.
    private(set) var warnings: [String] = []
    /// Why the options of some backends are unchecked: their child died or did not reply.
    private(set) var unchecked: [ConfigurationDiagnostic] = []
    /// The backends whose command was not executed, and whose options are unchecked therefore.
    private(set) var notRun: [ConfigurationDiagnostic] = []
    private let runsCommands: Bool
    private var byBackend: [String: Plugin] = [:]
    /// What each backend's plugin can do with its options, as far as that is known.
    private var capabilities: [String: Plugin.Capabilities] = [:]
    /// The backends whose options have no error.
    private var sound: Set<String> = []

    /// Loads the plugins, or has a child process load them, and has them check their options; no storage is touched.
    ///
    /// - Parameters:
    ///   - loopCount: how many event loops read from backends.
    ///   - runsCommands: whether the commands of backends are executed.
    ///   - logger: of the children's own messages.
    /// - Throws: `InvalidConfiguration` with every error and its place in the file.
    init(
        _ configuration: Configuration, loopCount: Int, runsCommands: Bool = true, logger: Logger
    ) throws(InvalidConfiguration) {
        self.runsCommands = runsCommands
        var diagnostics: [ConfigurationDiagnostic] = []
        for backend in configuration.backends {
            do throws(PluginLoadingError) {
                switch backend.isolation {
                case .inline: try load(backend, configuration, &diagnostics)
                case .process: try startChild(backend, configuration, loopCount, logger, &diagnostics)
                }
            } catch {
                diagnostics.append(
                    configuration.diagnostic(at: backend.implementationPosition, error.description, error.kind))
            }
        }
        diagnostics += refusedChanges(in: configuration) + sharedStorage(in: configuration)
        if !diagnostics.isEmpty { throw InvalidConfiguration(diagnostics) }
    }

    private mutating func load(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ diagnostics: inout [ConfigurationDiagnostic]
    ) throws(PluginLoadingError) {
        guard case .plugin(let name) = backend.implementation else { return }
        let plugin = try Plugin.load(
            PluginFile(named: name, in: configuration.pluginDirectories, sha256: backend.sha256))
        let check = plugin.check(options: backend.options)
        add(plugin, check, of: backend)
        diagnostics += check.failures.map { configuration.diagnostic(of: $0, opening: backend) }
    }

    /// The rules whose collections are to have a feed of changes that their backend's plugin cannot keep.
    private func refusedChanges(in configuration: Configuration) -> [ConfigurationDiagnostic] {
        configuration.collections.rules.compactMap { rule in
            guard let changes = rule.changes, let plugin = byBackend[rule.backend],
                let capabilities = capabilities[rule.backend], !capabilities.contains(.sequences)
            else { return nil }
            let because = plugin.capabilities.contains(.sequences) ? " with its options" : ""
            return configuration.diagnostic(
                at: changes.position,
                "collection \(quoted(rule.pattern.text.utf8)): backend \(rule.backend) "
                    + "(\(plugin.name)) cannot remember changes\(because)")
        }
    }

    /// The backends that would write to the storage of another one.
    private func sharedStorage(in configuration: Configuration) -> [ConfigurationDiagnostic] {
        var owners: [StoragePlace: String] = [:]
        return configuration.backends.compactMap { backend in
            guard sound.contains(backend.name), let plugin = byBackend[backend.name],
                let option = plugin.storageOption, let value = backend.text(ofOption: option)
            else { return nil }
            let place = StoragePlace(plugin.path, backend.implementation, value)
            guard let owner = owners[place] else {
                owners[place] = backend.name
                return nil
            }
            return configuration.diagnostic(
                at: backend.position(ofOption: option),
                "backend \(backend.name): \(quoted(value)) is the storage of backend \(owner) already: two backends "
                    + "cannot share one")
        }
    }

    private mutating func add(_ plugin: Plugin, _ check: OptionCheck, of backend: BackendConfiguration) {
        byBackend[backend.name] = plugin
        if !all.contains(where: { $0.path == plugin.path }) { all.append(plugin) }
        if check.failures.isEmpty { sound.insert(backend.name) }
        capabilities[backend.name] = check.capabilities ?? (check.doubt == nil ? plugin.capabilities : nil)
    }

    /// Has a child load the backend's plugin, or be it, and check the options.
    private mutating func startChild(
        _ backend: BackendConfiguration, _ configuration: Configuration, _ loopCount: Int, _ logger: Logger,
        _ diagnostics: inout [ConfigurationDiagnostic]
    ) throws(PluginLoadingError) {
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
            loopCount: loopCount, launcher: try ChildCommand.findLauncher())
        if case .command = backend.implementation, !runsCommands {
            _ = try command.file()
            let what = "its options were not checked, since that executes its command (--run-commands does)"
            notRun.append(
                configuration.diagnostic(at: backend.implementationPosition, "backend \(backend.name): \(what)"))
            return
        }
        do throws(PluginFailure) {
            let (plugin, check) = try Plugin.inChild(command, options: backend.options, logger: logger)
            add(plugin, check, of: backend)
            if let doubt = check.doubt {
                let message = "backend \(backend.name) could not be checked: \(doubt.message)"
                warnings.append(message)
                unchecked.append(configuration.diagnostic(at: backend.implementationPosition, message))
            } else {
                diagnostics += check.failures.map { configuration.diagnostic(of: $0, opening: backend) }
            }
        } catch {
            diagnostics.append(
                configuration.diagnostic(
                    at: backend.implementationPosition, "backend \(backend.name): \(error.message)",
                    error.isFinal ? .configuration : .system))
        }
    }

    /// The largest frame that a child has reason to send: a mebibyte of records, after which a reply continues in
    /// another frame, and one more record in the format that takes the most room, or the result of a query; and the
    /// frame's head.
    private static func childFrameBytes(_ limits: Configuration.Limits) -> Int {
        (2 << 20) + max(limits.frameBytes, Codec(.xml).maximumStoredBytes(ofItem: limits.itemBytes))
    }

    /// The names of the backends to which others write too, with their options.
    var shared: Set<String> { Set(capabilities.filter { $0.value.contains(.shared) }.keys) }

    /// The plugin of a backend; there is one for each backend of the configuration.
    subscript(backend: BackendConfiguration) -> Plugin? { byBackend[backend.name] }
}

extension InvalidConfiguration {
    /// These errors, and those that plugins find in the rest of the file: no storage is touched.
    func withPluginErrors(runsCommands: Bool = true, _ logger: Logger) -> InvalidConfiguration {
        guard let remainder else { return self }
        do throws(InvalidConfiguration) {
            _ = try PluginSet(remainder, loopCount: 1, runsCommands: runsCommands, logger: logger)
            return self
        } catch {
            return InvalidConfiguration(diagnostics + error.diagnostics)
        }
    }
}

extension Configuration {
    func diagnostic(
        at position: SourcePosition, _ message: String, _ kind: SystemErrorKind = .configuration
    ) -> ConfigurationDiagnostic {
        ConfigurationDiagnostic(file: file, position: position, message: message, kind: kind)
    }

    /// A backend that can never be opened as it is defined.
    func diagnostic(of failure: PluginFailure, opening backend: BackendConfiguration) -> ConfigurationDiagnostic {
        diagnostic(at: backend.position(ofOption: failure.pointer), "backend \(backend.name): \(failure.message)")
    }
}
