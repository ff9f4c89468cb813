import CRUDModel
import CRUDPlacement
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Logging
import Synchronization

@testable import CRUDStorage

/// Two SQLite databases, a catalog, and the moves of one collection between them.
final class MovedBackends {
    let directory: TemporaryDirectory
    let backends: [Backend]
    let name = Array("c".utf8)
    let control: PlacementControl
    let loops: GatedLoops
    private let rules: CollectionRules

    init() throws {
        directory = try TemporaryDirectory()
        let path = "\(directory.path)/sqlite.so"
        try Files.copy(BuildProducts.path(of: "libsqlite.so"), to: path, mode: 0o755)
        let plugin = try Plugin.load(PluginFile(named: "sqlite", in: [directory.path], sha256: nil))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let folder = directory.path
        backends = ["main", "other"].map { name in
            Backend(
                name: name, plugin: plugin, options: Array(#"{"path":"\#(folder)/\#(name).sqlite"}"#.utf8),
                loopCount: 1,
                logger: logger, admission: { _, _, _ in nil })
        }
        for backend in backends { if let failure = try backend.startAndWait() { throw failure } }
        rules = try CollectionRules([CollectionRule("c", backend: "other", indexes: ["n"])])
        for backend in backends { backend.follow(rules) }
        try Files.makeDirectory("\(folder)/state")
        control = PlacementControl(try Catalog(directory: "\(folder)/state"), logger: logger)
        loops = try GatedLoops(backends)
        control.follow(backends, rules, maximumByPattern: 9)
        try control.start(loops)
        _ = control.admit(name, at: CollectionPlace(backend: "main", format: .json), isNew: true)
    }

    deinit {
        loops.open()
        _ = control.executor.finish(within: .seconds(30))
        control.stop()
        for backend in backends { backend.stop() }
    }

    /// The collection in a backend.
    func collection(_ format: CollectionRule.Format = .json) -> BackendCollection {
        BackendCollection(name: name, format: format, indexPaths: rules.rules[0].indexPaths)
    }

    /// Records a placement, and has its acts executed.
    func begin(_ placement: Placement) throws {
        try control.catalog.commit([Catalog.Transition(name, from: control.catalog.entry(name), to: placement)])
        control.follow(name, retriesFailed: true)
    }

    /// The placement that the file remembers.
    func remembered() throws -> Placement {
        try Catalog(directory: "\(directory.path)/state").entry(name).placement
    }

    /// Waits until the move is in a phase.
    func await(_ phase: ActProgress.Phase) throws -> MoveProgress {
        let deadline = Deadline()
        while true {
            let progress = control.progress(of: name).move
            if let progress, progress.phase == phase { return progress }
            guard !deadline.hasPassed else { throw Failure("the move is \(String(describing: progress))") }
        }
    }

    /// Waits until nothing is to be done.
    func awaitRest() throws {
        let deadline = Deadline()
        while !control.catalog.entry(name).placement.isAtRest {
            guard !deadline.hasPassed else { throw Failure("\(control.catalog.entry(name).placement)") }
        }
    }

    /// The records of a collection: id, item, revision and expiry.
    func records(of backend: Int, _ collection: BackendCollection) throws -> [String] {
        try list(of: backend, collection).texts
    }

    /// Their sequence numbers, in the order of their ids.
    func sequences(of backend: Int, _ collection: BackendCollection) throws -> [UInt64] {
        try list(of: backend, collection).sequences
    }

    private func list(of backend: Int, _ collection: BackendCollection) throws -> RecordList {
        let list = RecordList()
        try backends[backend].perform(within: .seconds(30)) { storage throws(CRUDError) in
            if !collection.isOpen { try storage.open(collection) }
            try storage.reader().scan(RecordScan(.id), of: collection, into: list)
            storage.releaseSnapshot()
        }
        return list
    }
}

private final class RecordList: RecordVisitor, @unchecked Sendable {
    // @unchecked: it belongs to the thread that scans until the scan is done.
    private(set) var texts: [String] = []
    private(set) var sequences: [UInt64] = []

    func visit(_ record: FoundRecord) -> Bool {
        let parts = [record.id, record.item, record.revision].map { String(decoding: $0, as: UTF8.self) }
        texts.append("\(parts[0]) \(parts[1]) \(parts[2]) \(record.expiresAt)")
        sequences.append(record.sequence)
        return true
    }
}

/// Event loops without requests, which let a test decide when a collection may be switched.
final class GatedLoops: ServingLoops {
    /// The switches that wait.
    let switches: Inbox<OneShot<Bool>>
    private let backends: [Backend]
    private let isGated = Mutex(false)

    init(_ backends: [Backend]) throws {
        self.backends = backends
        switches = try Inbox<OneShot<Bool>>()
    }

    /// From now on each switch waits for the test.
    func close() { isGated.withLock { $0 = true } }

    func open() {
        isGated.withLock { $0 = false }
        while switches.count > 0, let gate = try? switches.take() { gate.resolve(true) }
    }

    func quiesce(_ collections: QuiescedCollections, within timeout: Duration) -> [Backend]? {
        guard isGated.withLock({ $0 }) else { return backends }
        let gate = OneShot<Bool>()
        switches.put(gate)
        return gate.wait() ? backends : nil
    }

    func serveQuiesced() {}
}
