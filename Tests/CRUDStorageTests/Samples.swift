import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDTestSupport
import Logging

extension CollectionRule {
    /// A rule for the collections of one pattern.
    init(
        _ pattern: String, backend: String = "main", _ format: Format = .json, indexes: [String] = [],
        changes: Changes? = nil
    ) throws {
        self.init(
            pattern: try CollectionPattern(Array(pattern.utf8)), backend: backend, format: format, indexes: indexes,
            position: .start, changes: changes)
    }
}

/// Backends over the scripted plugin; nothing is opened unless they are started.
func backends(
    _ names: String..., capabilities: Plugin.Capabilities = [.concurrentReads, .fastReads, .indexes]
) throws -> [Backend] {
    let plugin = try ScriptedPlugin(capabilities: capabilities).loaded
    return names.map { name in
        Backend(
            name: name, plugin: plugin, options: Array("{}".utf8), loopCount: 1,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, admission: { _, _, _ in nil })
    }
}
