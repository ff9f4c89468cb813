import CRUDPluginHost
import CRUDTestSupport
import Logging

@testable import CRUDStorage

/// A backend over the scripted plugin in a child, stopped when nobody holds it any more.
final class ChildBackend: Sendable {
    static let loopCount = 2

    let backend: Backend
    let log: Inbox<String>
    private let directory: TemporaryDirectory

    init(options: String = "{}") throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        try CompiledPlugin.compile(
            "scripted.c", definitions: ["CAPABILITIES=CRUDD_CAN_READ_CONCURRENTLY"],
            to: "\(directory.path)/scripted.so")
        let lines = try Inbox<String>()
        log = lines
        let logger = Logger(label: "test") { _ in LogInbox(lines: lines) }
        let command = ChildCommand(
            backend: "main", program: .plugin("scripted", directories: [directory.path]), sha256: nil,
            limits: ChildCommand.Limits(), loopCount: Self.loopCount,
            launcher: try BuildProducts.path(of: "crudd-plugin-host"))
        let options = Array(options.utf8)
        backend = Backend(
            name: "main", plugin: try Plugin.inChild(command, options: options, logger: logger).plugin,
            options: options, loopCount: Self.loopCount, logger: logger, admission: { _, _, _ in nil })
        if let failure = try backend.startAndWait() { throw failure }
    }

    deinit { backend.stop() }

    func write(_ changes: Change..., in collection: BackendCollection) throws {
        let outcomes = try backend.write(changes, in: collection).outcomeTexts
        guard outcomes.allSatisfy({ $0 == "applied" }) else { throw Failure("\(outcomes)") }
    }
}
