import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Glibc
import Logging

@testable import CRUDStorage

/// The plugin of `Tests/Plugins/indexed.c`, and the backend over it that is open. Its records survive a restart.
final class IndexedBackend {
    /// In the order of the C source.
    enum Counter: Int32 {
        case keysSet, keyWrites, scans, openedCollections
    }

    private(set) var backend: Backend
    private let plugin: Plugin
    private let counter: @convention(c) (Int32) -> Int
    private let closeGateOfKeys: @convention(c) () -> Void
    private let openGateOfKeys: @convention(c) () -> Void
    private let passKeys: @convention(c) () -> Void
    private let awaitKeys: @convention(c) (Int32) -> Int32
    private let failScans: @convention(c) (Int32) -> Void

    init() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/indexed.so"
        try CompiledPlugin.compile("indexed.c", to: path)
        plugin = try Plugin.load(PluginFile(named: "indexed", in: [directory.path], sha256: nil))
        guard let library = dlopen(path, RTLD_NOW | RTLD_NOLOAD) else { throw Failure("\(path) is not loaded") }
        func function<Function>(_ name: String, _ type: Function.Type) throws -> Function {
            guard let symbol = dlsym(library, name) else { throw Failure("\(path) has no \(name)") }
            // The C source gives the symbol this type.
            return unsafe unsafeBitCast(symbol, to: type)
        }
        counter = try function("indexed_counter", (@convention(c) (Int32) -> Int).self)
        closeGateOfKeys = try function("indexed_close_gate", (@convention(c) () -> Void).self)
        openGateOfKeys = try function("indexed_open_gate", (@convention(c) () -> Void).self)
        passKeys = try function("indexed_pass", (@convention(c) () -> Void).self)
        awaitKeys = try function("indexed_await", (@convention(c) (Int32) -> Int32).self)
        failScans = try function("indexed_fail_scans", (@convention(c) (Int32) -> Void).self)
        backend = Self.backend(plugin)
        if let failure = try backend.startAndWait() { throw failure }
    }

    deinit {
        openGateOfKeys()
        backend.stop()
    }

    private static func backend(_ plugin: Plugin) -> Backend {
        Backend(
            name: "main", plugin: plugin, options: Array("{}".utf8), loopCount: 1,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, admission: { _, _, _ in nil })
    }

    /// Closes the backend and opens another one over the same records.
    func restart() throws {
        backend.stop()
        backend = Self.backend(plugin)
        if let failure = try backend.startAndWait() { throw failure }
    }

    subscript(_ counter: Counter) -> Int { self.counter(counter.rawValue) }

    /// From now on a write of keys waits for ``pass()``.
    func closeGate() { closeGateOfKeys() }
    func openGate() { openGateOfKeys() }
    func pass() { passKeys() }

    /// Waits until another write of keys has come to the gate.
    func waitForKeys() throws {
        guard awaitKeys(30) != 0 else { throw Failure("no keys are written") }
    }

    /// Closes the backend in the middle of a build: after the write of keys that waits at the gate.
    func stopAfterStep() {
        // Before the step ends, so that no other one begins.
        backend.writes.close()
        pass()
        backend.stop()
    }

    /// Has scans of collections whose names begin with `broken` fail.
    func failScans(_ fails: Bool) { failScans(fails ? 1 : 0) }

    // MARK: Records

    func write(_ changes: [Change], in collection: BackendCollection) throws {
        let outcomes = try backend.write(changes, in: collection).outcomeTexts
        guard outcomes.allSatisfy({ $0 == "applied" || $0 == "replaced" }) else { throw Failure("\(outcomes)") }
    }

    /// Has the backend open a collection.
    ///
    /// - Parameter afterStep: whether the writer's thread waits at the gate, and is let past it once.
    func open(_ collection: BackendCollection, afterStep: Bool = false) throws {
        let inbox = try Inbox<WorkItem>()
        let batch = ReadBatch { inbox.put($0) }
        batch.append(Read(.count(prefix: .empty), in: collection))
        backend.submit(.read(.batch(batch)))
        if afterStep { pass() }
        if let failure = try inbox.take().failure { throw failure }
    }

    /// The ids that a scan finds.
    func ids(_ scan: RecordScan, in collection: BackendCollection) throws -> [String] {
        guard let reader = backend.reader(forLoop: 0) else { throw Failure("the backend is not ready") }
        defer { reader.releaseSnapshot() }
        let visitor = Identifiers()
        try reader.scan(scan, of: collection, into: visitor)
        return visitor.ids
    }

    /// The ids of the records whose value in an index is that of `item`.
    func ids(_ index: Int, equal item: String, in collection: BackendCollection) throws -> [String] {
        let key = try Self.keys(of: item, in: collection)[index]
        return try ids(RecordScan(.key(index: index), lower: key, upper: key + [0]), in: collection)
    }

    /// The keys of an item, one for each index of a collection.
    static func keys(of item: String, in collection: BackendCollection) throws -> [[UInt8]] {
        var keys = RecordKeys(collection.indexPaths)
        guard let made = keys.keys(of: Array(item.utf8).span) else { throw Failure("\(item) has no keys") }
        return made
    }

    /// Lets the writer's thread work until something holds.
    func wait(until condition: () throws -> Bool) throws {
        let deadline = Deadline()
        while try !condition() {
            guard !deadline.hasPassed, backend.drain(within: .seconds(30)) else { throw Failure("it does not happen") }
        }
    }

    private final class Identifiers: RecordVisitor {
        private(set) var ids: [String] = []

        func visit(_ record: FoundRecord) -> Bool {
            ids.append(String(decoding: record.id, as: UTF8.self))
            return true
        }
    }
}
