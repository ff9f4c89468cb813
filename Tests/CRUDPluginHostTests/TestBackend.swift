import CRUDModel
import CRUDTestSupport
import Logging

@testable import CRUDPluginHost

/// A backend over the scripted plugin, stopped when nobody holds it any more.
final class TestBackend: Sendable {
    let plugin: ScriptedPlugin
    let backend: Backend
    let log: Inbox<String>

    /// - Parameter options: as `Tests/Plugins/scripted.c` explains.
    init(
        capabilities: Plugin.Capabilities = [.readsConcurrently, .readsFast], options: String = "{}", loops: Int = 2,
        admission: @escaping @Sendable (BackendCollection) -> CRUDError? = { _ in nil }
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
        capabilities: Plugin.Capabilities = [.readsConcurrently, .readsFast], options: String = "{}", loops: Int = 2,
        admission: @escaping @Sendable (BackendCollection) -> CRUDError? = { _ in nil }
    ) throws -> TestBackend {
        let backend = try TestBackend(
            capabilities: capabilities, options: options, loops: loops, admission: admission)
        if let failure = try backend.start() { throw failure }
        return backend
    }

    /// Starts the backend and answers the outcome of its first try to open.
    func start() throws -> PluginFailure? {
        let outcome = try Inbox<PluginFailure?>()
        try backend.start { outcome.put($0) }
        return try outcome.take()
    }

    // MARK: Work

    /// Submits changes as one batch.
    func submit(_ changes: [Change], in collection: BackendCollection, to inbox: Inbox<WorkItem>) -> MutationBatch {
        let batch = MutationBatch { inbox.put($0) }
        for change in changes { batch.append(change, in: collection) }
        backend.submit(batch)
        return batch
    }

    /// Submits changes as one batch and waits for it.
    @discardableResult
    func write(_ changes: Change..., in collection: BackendCollection) throws -> MutationBatch {
        let inbox = try Inbox<WorkItem>()
        let batch = submit(changes, in: collection, to: inbox)
        _ = try inbox.take()
        return batch
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
        backend.submit(batch)
        _ = try inbox.take()
        return try FoundTexts(batch)
    }

    /// Counts the records of a collection.
    func count(_ collection: BackendCollection) throws -> Int? {
        let inbox = try Inbox<WorkItem>()
        let batch = ReadBatch { inbox.put($0) }
        batch.append(Read(.count, in: collection))
        backend.submit(batch)
        _ = try inbox.take()
        return if case .count(let count) = batch.results.first { count } else { nil }
    }
}

/// One change of one record, written out.
struct Change {
    var kind = Mutation.Kind.put
    var id: String
    var item = ""
    var revision = "r"
    var precondition = Precondition.any

    enum Precondition {
        case any, absent, present
        case revision(String)
    }

    static func put(
        _ id: String, _ item: String = "1", _ revision: String = "r", if precondition: Precondition = .any
    ) -> Change {
        Change(id: id, item: item, revision: revision, precondition: precondition)
    }

    static func remove(_ id: String, if precondition: Precondition = .any) -> Change {
        Change(kind: .remove, id: id, precondition: precondition)
    }

    static func check(_ id: String, if precondition: Precondition) -> Change {
        Change(kind: .check, id: id, precondition: precondition)
    }
}

extension MutationBatch {
    func append(
        _ change: Change, in collection: BackendCollection, transformation: (any ItemTransformation)? = nil
    ) {
        func place(_ text: String) -> ByteArena.Place { store(Array(text.utf8).span) }
        let precondition: Mutation.Precondition =
            switch change.precondition {
            case .any: .any
            case .absent: .absent
            case .present: .present
            case .revision(let revision): .revision(place(revision))
            }
        append(
            Mutation(
                change.kind, in: collection, id: place(change.id), precondition: precondition,
                item: place(change.item), revision: place(change.revision), transformation: transformation))
    }

    /// What each mutation came to, in words.
    var outcomeTexts: [String] {
        outcomes.map { outcome in
            switch outcome {
            case .applied(let replaced): replaced ? "replaced" : "applied"
            case .exists: "exists"
            case .notFound: "not found"
            case .mismatch(let current): "mismatch \(String(decoding: current, as: UTF8.self))"
            case .failed(let status): "failed \(status)"
            case .refused(let error): "refused \(error.code.name)"
            }
        }
    }
}

/// What the one read of a batch came to.
enum FoundTexts: Equatable {
    /// `ITEM@REVISION` for each id, nil where there is no record.
    case records([String?])
    case tooLong
    case failed(CRUDError.Code)
    /// The batch as a whole.
    case refused(CRUDError.Code)

    init(_ batch: ReadBatch) throws {
        if let failure = batch.failure {
            self = .refused(failure.code)
            return
        }
        switch batch.results.first {
        case .records(let records):
            self = .records(
                records.map { record in
                    record.map { "\(Self.text($0.item, batch))@\(Self.text($0.revision, batch))" }
                })
        case .tooLong: self = .tooLong
        case .failed(let error): self = .failed(error.code)
        case .count, nil: throw Failure("not what was asked for")
        }
    }

    private static func text(_ place: ByteArena.Place, _ batch: ReadBatch) -> String {
        String(decoding: batch.found.bytes(place), as: UTF8.self)
    }
}

/// A collection of the test's own.
func collection(_ name: String = "c", indexes: [String] = []) -> BackendCollection {
    BackendCollection(name: Array(name.utf8), format: "json", indexes: indexes)
}
