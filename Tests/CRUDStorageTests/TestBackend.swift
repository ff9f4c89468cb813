import CRUDModel
import CRUDPluginHost
import CRUDTestSupport
import Logging

@testable import CRUDStorage

/// A backend over the scripted plugin, stopped when nobody holds it any more.
final class TestBackend: Sendable {
    let plugin: ScriptedPlugin
    let backend: Backend
    let log: Inbox<String>

    /// - Parameter options: as `Tests/Plugins/scripted.c` explains.
    init(
        capabilities: Plugin.Capabilities = [.concurrentReads, .fastReads], options: String = "{}", loops: Int = 2,
        admission: @escaping CollectionAdmission = { _, _, _ in nil }
    ) throws {
        plugin = try ScriptedPlugin(capabilities: capabilities)
        let lines = try Inbox<String>()
        log = lines
        backend = Backend(
            name: "main", plugin: plugin.loaded, options: Array(options.utf8), loopCount: loops,
            logger: Logger(label: "test") { _ in LogInbox(lines: lines) }, admission: admission)
    }

    deinit {
        plugin.pass(1000)
        backend.stop()
    }

    /// A backend that has been opened.
    static func opened(
        capabilities: Plugin.Capabilities = [.concurrentReads, .fastReads], options: String = "{}", loops: Int = 2,
        admission: @escaping CollectionAdmission = { _, _, _ in nil }
    ) throws -> TestBackend {
        let backend = try TestBackend(
            capabilities: capabilities, options: options, loops: loops, admission: admission)
        if let failure = try backend.start() { throw failure }
        return backend
    }

    /// Starts the backend.
    ///
    /// - Returns: the outcome of its first attempt to open the storage.
    func start() throws -> PluginFailure? { try backend.startAndWait() }

    /// Submits changes as one batch.
    func submit(_ changes: [Change], in collection: BackendCollection, to inbox: Inbox<WorkItem>) -> MutationBatch {
        backend.submit(changes, in: collection, to: inbox)
    }

    /// Submits changes as one batch and waits for it.
    @discardableResult
    func write(_ changes: Change..., in collection: BackendCollection) throws -> MutationBatch {
        try backend.write(changes, in: collection)
    }

    /// Submits one read and waits for its result.
    func read(
        _ ids: [String], withItems: Bool = true, maximumBytes: Int = .max, in collection: BackendCollection
    ) throws -> FoundTexts {
        let inbox = try Inbox<WorkItem>()
        let batch = ReadBatch { inbox.put($0) }
        let places = ids.map { batch.store(Array($0.utf8).span) }
        batch.append(
            Read(withItems ? .records(places) : .existence(places), in: collection, maximumBytes: maximumBytes))
        backend.submit(.read(.batch(batch)))
        _ = try inbox.take()
        return try FoundTexts(batch)
    }

    /// Counts the records of a collection.
    func count(_ collection: BackendCollection) -> Int? { backend.count(collection, within: .seconds(30)) }
}

extension Backend {
    /// Starts the backend.
    ///
    /// - Returns: the outcome of its first attempt to open the storage.
    func startAndWait() throws -> PluginFailure? {
        let outcome = try Inbox<PluginFailure?>()
        try start { outcome.put($0) }
        return try outcome.take()
    }

    /// Submits changes as one batch.
    func submit(_ changes: [Change], in collection: BackendCollection, to inbox: Inbox<WorkItem>) -> MutationBatch {
        let batch = MutationBatch { inbox.put($0) }
        for change in changes { batch.append(change, in: collection) }
        submit(.write(batch))
        return batch
    }

    /// Submits changes as one batch and waits for it.
    @discardableResult
    func write(_ changes: [Change], in collection: BackendCollection) throws -> MutationBatch {
        let inbox = try Inbox<WorkItem>()
        let batch = submit(changes, in: collection, to: inbox)
        _ = try inbox.take()
        return batch
    }
}

/// A collection of the test's own.
func collection(_ name: String = "c", indexes: [String] = []) -> BackendCollection {
    BackendCollection(
        name: Array(name.utf8), format: .json, indexPaths: indexes.compactMap { PropertyPath(utf8: $0.utf8) })
}
