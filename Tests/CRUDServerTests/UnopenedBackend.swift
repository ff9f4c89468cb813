import CRUDModel
import CRUDPluginHost
import CRUDTestSupport
import Logging

@testable import CRUDStorage

/// A backend that is never opened, and a loop that never runs: enough for what only orders and counts requests.
final class UnopenedBackend: LoopContext {
    let number = 0
    var inputCount: UInt64 = 0
    var now = Duration.zero
    let deliver: @Sendable (WorkItem) -> Void = { _ in }
    private let backend: Backend
    private(set) lazy var client = BackendClient(backend, loop: self)

    private static let plugin = Result {
        let directory = try TemporaryDirectory()
        try CompiledPlugin.compile("scripted.c", definitions: ["CAPABILITIES=0"], to: "\(directory.path)/scripted.so")
        return try Plugin.load(PluginFile(named: "scripted", in: [directory.path], sha256: nil))
    }

    init() throws {
        backend = Backend(
            name: "main", plugin: try Self.plugin.get(), options: Array("{}".utf8), loopCount: 1,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            admission: { _, _, _ in nil })
    }

    func collection(_ name: String) throws -> Collection {
        let name = Array(name.utf8)
        let rule = CollectionRule(
            pattern: try CollectionPattern(name), backend: "main", format: .json, indexes: [], position: .start)
        return Collection(name: name, rule: rule, client: client)
    }

    func wake() {}
    func openStream(_ descriptor: CInt, for channel: LoopChannel) -> (any ChannelTransport)? { nil }
}
