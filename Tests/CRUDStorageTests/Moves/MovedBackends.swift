import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Logging

@testable import CRUDStorage

/// Two SQLite databases, a catalog, and the moves of one collection between them.
final class MovedBackends {
    let directory: TemporaryDirectory
    let backends: [Backend]
    let name = Array("c".utf8)
    private(set) var catalog: CollectionCatalog
    private(set) var mover: Mover
    let switches: Inbox<SwitchRequest>
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
                logger: logger, admission: { _ in nil })
        }
        for backend in backends { if let failure = try backend.startAndWait() { throw failure } }
        rules = try CollectionRules([CollectionRule("c", backend: "other", indexes: ["n"])])
        for backend in backends { backend.follow(rules) }
        switches = try Inbox<SwitchRequest>()
        catalog = try CollectionCatalog(directory: "\(folder)/state", rules: rules, maximumBornByGlob: 9)
        mover = Mover(catalog, logger: logger) { [switches] in switches.put($0) }
        _ = catalog.admit(.init(name: name, place: CollectionPlace(backend: "main", format: .json)))
    }

    deinit {
        mover.stop()
        for backend in backends { backend.stop() }
    }

    /// The collection in a backend.
    func collection(_ format: CollectionRule.Format = .json) -> BackendCollection {
        BackendCollection(name: name, format: format, indexPaths: rules.rules[0].indexPaths)
    }

    /// Has the catalog remember a move, and the mover follow it.
    func begin(to format: CollectionRule.Format = .json, _ state: Move.State = .planned) throws {
        try catalog.update(name) {
            $0.move = .init(destination: CollectionPlace(backend: "other", format: format), state: state)
        }
        mover.follow(backends)
    }

    /// The state that the file remembers.
    func remembered() throws -> CollectionCatalog.Entry? {
        try CollectionCatalog(directory: "\(directory.path)/state", rules: rules, maximumBornByGlob: 9)
            .entry(named: name)
    }

    /// Executes a switch that is asked for.
    func switchOver() throws -> Bool {
        let request = try switches.take()
        guard request.begin() else { return false }
        let outcome = Result { () throws(CRUDError) in try request.move.switchOver() }
        request.end(outcome)
        return try outcome.get()
    }

    /// Waits until the move is in a phase; nil: until it is over.
    func await(_ phase: Move.Phase?) throws -> Move.Progress? {
        let deadline = Deadline()
        while true {
            let progress = mover.progress(of: name)
            if progress?.phase == phase { return progress }
            guard !deadline.hasPassed else { throw Failure("the move is \(String(describing: progress))") }
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
