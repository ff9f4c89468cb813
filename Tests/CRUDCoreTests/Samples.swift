import CRUDConfiguration
import CRUDPluginHost
import CRUDTestSupport
import Logging

/// The rules of this section `collections`, over the backends `main` and `other`.
func rules(_ collections: String) throws -> CollectionRules {
    let yaml = """
        state_directory: /var/lib/crudd
        backends: {main: {plugin: memory}, other: {plugin: memory}}
        collections: {\(collections)}
        """
    return try CRUDConfiguration.Configuration(yaml: Array(yaml.utf8), file: "crudd.yaml", environment: [:]).collections
}

/// Backends over the memory plugin; nothing is opened unless they are started.
func backends(_ names: String...) throws -> [Backend] {
    let directory = try TemporaryDirectory()
    try CompiledPlugin.compile("memory.c", to: "\(directory.path)/memory.so")
    let plugin = try Plugin.load(PluginFile(named: "memory", in: [directory.path], sha256: nil))
    return names.map { name in
        Backend(
            name: name, plugin: plugin, options: Array("{}".utf8), loopCount: 1,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, admission: { _ in nil })
    }
}
