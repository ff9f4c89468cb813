import CRUDConfiguration
import CRUDJSON
import CRUDModel
import CRUDStorage
import CRUDWire

/// Hands each call to the handler of its method: finds the collection, checks the peer's access to it, and lets the
/// call wait where earlier requests come first.
final class Router: CallHandler {
    private let collections: CollectionDirectory
    private let reads: RecordReadHandler
    private let writes: RecordWriteHandler
    private let queries: QueryHandler
    private let changes: ChangesHandler
    private let batches: BatchHandler
    private let descriptions: CollectionHandler
    private let administration: AdministrationHandler
    private let access: AccessHandler
    private let loop: LoopState

    init(
        _ loop: LoopState, _ collections: CollectionDirectory, _ delegated: DelegatedCalls, _ inspector: Inspector,
        _ mailbox: Mailbox
    ) {
        let encoder = MutationEncoder(loop)
        self.collections = collections
        reads = RecordReadHandler(loop, mailbox)
        writes = RecordWriteHandler(loop, encoder)
        queries = QueryHandler(loop)
        changes = ChangesHandler(loop, queries)
        batches = BatchHandler(loop, collections, encoder)
        descriptions = CollectionHandler(loop)
        administration = AdministrationHandler(loop, delegated, inspector)
        access = AccessHandler(loop, delegated, inspector)
        self.loop = loop
    }

    /// Follows another configuration.
    func serve() { reads.serve(loop.limits) }

    func handle(_ call: borrowing Call) -> Disposition {
        if loop.logsRequests { log(call) }
        do throws(CRUDError) {
            switch call.method {
            case .recordBatch: return try batches.execute(call)
            // It is about a collection and does not use it.
            case .accessCheck: return try handleWithoutCollection(call)
            default: break
            }
            guard let name = call[.collection] else { return try handleWithoutCollection(call) }
            let collection = try collections.find(name, call, to: call.request.traits.access)
            let isLongWrite = collection.takesLong(
                isPatch: call.method == .recordPatch, contentBytes: call.request.contentBytes)
            let disposition = call.admission(
                isLongWrite ? .slicedWrite : call.method.kind, to: collection,
                replyBytes: call.method.leastReplyBytes(loop.limits) + (isLongWrite ? loop.limits.longWriteBytes : 0))
            if case .accepted = disposition {
                collection.countRequest()
                try handle(call, on: collection)
            }
            return disposition
        } catch {
            // The operations of a batch are denied one by one.
            if error.code == .permissionDenied, call.method != .recordBatch {
                let collection: [UInt8]? = if let name = call[.collection] { call.decode(name) } else { nil }
                call.session.noteDenial(of: call.method, on: collection, call.traceParent)
            }
            call.fail(error)
            return .accepted
        }
    }

    private func log(_ call: borrowing Call) {
        var description = Self.description(of: call)
        if let traceParent = call.traceParent { description += ", trace \(traceParent.traceID)" }
        call.session.trace(call.hasWaited ? "\(description), which has waited" : description)
    }

    /// The method and the collection.
    private static func description(of call: borrowing Call) -> String {
        let method = call.request.traits.name.description
        guard let collection = call[.collection] else { return method }
        return "\(method) on collection \(quoted(call.decode(collection)))"
    }

    private func handle(_ call: borrowing Call, on collection: Collection) throws(CRUDError) {
        switch call.method {
        case .recordRead: try reads.read(call, collection)
        case .recordExists: reads.exists(call, collection)
        case .recordReadMany: try reads.readMany(call, collection)
        case .recordCreate, .recordUpdate, .recordDelete, .recordUpsert, .recordPatch, .recordTouch:
            try writes.execute(call, collection)
        case .recordQuery: try queries.query(call, collection)
        case .recordCount: try queries.count(call, collection)
        case .recordDeleteMatching: try queries.deleteMatching(call, collection)
        case .collectionDescribe: descriptions.describe(call, collection)
        case .collectionChanges: try changes.changes(call, collection)
        case .collectionDrop: try descriptions.drop(call, collection)
        case .collectionReindex: descriptions.reindex(call, collection)
        case .recordBatch, .collectionList, .backendList, .backendBackup, .pluginList, .sessionHello, .daemonPing,
            .daemonStatus, .daemonReload, .daemonMetrics, .daemonSlowLog, .daemonConfiguration, .daemonLogLevel,
            .sessionList,
            .sessionClose, .discover, .sessionWhoami, .accessCheck, .requestCancel:
            // Their rows of the method table have no collection, or they do not use it.
            throw CRUDError(.internalError, "the method has no collection")
        }
    }

    /// What these methods reply depends on the writes before them, so that in a batch array they wait for those.
    private func handleWithoutCollection(_ call: borrowing Call) throws(CRUDError) -> Disposition {
        if let array = call.array, array.inFlight > 0 { return .mustWaitForArray(nil) }
        if call.request.traits.access == .admin, !call.session.authority.isAdmin { throw .denied(.admin) }
        switch call.method {
        case .collectionList: descriptions.list(call)
        case .backendList: administration.inspect(.backends, call)
        case .backendBackup: try administration.backUp(call)
        case .pluginList: administration.listPlugins(call)
        case .sessionHello: administration.hello(call)
        case .daemonPing: administration.ping(call)
        case .daemonStatus: administration.status(call)
        case .daemonReload: administration.reload(call)
        case .daemonMetrics: administration.inspect(.metrics(withHistograms: call.isTrue(.histograms)), call)
        case .daemonSlowLog: administration.inspect(.slowRequests(limit: try call.limit ?? SlowLog.capacity), call)
        case .daemonConfiguration: administration.listSettings(call)
        case .daemonLogLevel: try administration.setLogLevel(call)
        case .sessionList: administration.inspect(.sessions, call)
        case .sessionClose: administration.inspect(.closing(session: administration.session(call)), call)
        case .requestCancel: administration.cancel(call)
        case .discover: administration.discover(call)
        case .sessionWhoami: access.whoami(call)
        case .accessCheck: try access.check(call)
        case .recordRead, .recordExists, .recordReadMany, .recordCreate, .recordUpdate, .recordDelete, .recordUpsert,
            .recordPatch, .recordTouch, .recordQuery, .recordCount, .recordDeleteMatching, .recordBatch,
            .collectionDescribe, .collectionChanges, .collectionDrop, .collectionReindex:
            // Their rows of the method table require a collection.
            throw CRUDError(.internalError, "the method needs a collection")
        }
        return .accepted
    }
}

extension Method {
    /// How the method uses its collection.
    fileprivate var kind: RequestKind {
        switch self {
        case .recordCreate, .recordUpdate, .recordDelete, .recordUpsert, .recordPatch, .recordTouch: .write
        case .recordDeleteMatching, .collectionDrop, .collectionReindex: .slicedWrite
        case .recordQuery, .recordCount, .collectionDescribe, .collectionChanges: .scan
        default: .read
        }
    }

    /// How much room the reply needs for the call to start, beside a few bytes.
    fileprivate func leastReplyBytes(_ limits: Configuration.Limits) -> Int {
        switch self {
        case .recordQuery: min(limits.frameBytes, QueryHandler.leastPageBytes)
        case .collectionChanges: min(limits.frameBytes, ChangesHandler.leastPageBytes)
        case .recordReadMany: min(limits.frameBytes, RecordReadHandler.leastReplyBytes)
        case .recordPatch: limits.itemBytes
        default: 0
        }
    }
}
