import CRUDPluginKit
import CRUDRecordLog

/// Records in memory; with a log they outlive their process.
final class MemoryBackend: StorageBackend {
    static let name = "memory"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [
        .readsConcurrently, .readsFast, .transactions, .durable, .indexes, .sequences, .expiry, .takesHistory,
    ]
    static let storageOption: MemoryOptions.Key? = .log
    static let backupAdvice: String? = "use crudctl dump, or stop the daemon and copy the directory of its log"

    private let options: MemoryOptions
    private let maximumBytes: Int
    /// What all records count.
    private var usedBytes = 0
    /// Collections by name and then format, as bytes: the host tells texts apart that Swift takes for equal.
    private var collections: [[UInt8]: [[UInt8]: MemoryCollection]] = [:]
    /// How many collections there ever were.
    private var collectionsMade: UInt32 = 0
    /// Nil: there is no log.
    private var journal: Journal?
    private let changes: Changes?

    init(options: MemoryOptions, host: Host, call: CallContext) throws(StorageFailure) {
        self.options = options
        maximumBytes = options.maximumBytes ?? .max
        guard let path = options.log else {
            changes = nil
            return
        }
        changes = Changes()
        let directory = try LogDirectory(path, option: "/\(MemoryOptions.Key.log.rawValue)", host: host)
        var recovery = Recovery()
        let log = try RecordLog.open(directory, host: host) { (payload, segment) throws(StorageFailure) in
            try recovery.replay(payload, segment)
        }
        collectionsMade = recovery.lastCollection
        for collection in try recovery.collections(host) {
            collections[collection.name, default: [:]][collection.format] = collection
            usedBytes += collection.snapshot.size
        }
        journal = Journal(log, live: recovery.live)
    }

    static func capabilities(with options: MemoryOptions) -> Capabilities {
        options.log == nil ? capabilities.subtracting(.durable) : capabilities
    }

    var capabilities: Capabilities { Self.capabilities(with: options) }

    /// Without a log nothing is there when the backend is opened.
    var lastSequence: UInt64 { journal?.lastSequence ?? 0 }

    var identity: UInt64 { journal?.identity ?? 0 }

    func close() { journal = nil }

    func idle(_ call: CallContext) { journal?.idle(call) }

    /// Has the log have what was changed.
    private func commit(_ changes: Changes?) throws(StorageFailure) {
        guard let changes, let journal else { return }
        defer { changes.reset() }
        try journal.commit(changes)
    }

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> MemoryCollection {
        let name = Array(specification.name)
        let format = Array(specification.format)
        let opened = collections[name]?[format]
        guard specification.creates || opened != nil else {
            let text = String(decoding: name, as: UTF8.self)
            throw StorageFailure(
                .notFound, "there is no collection \(text) of format \(String(decoding: format, as: UTF8.self))")
        }
        if specification.isAsItIs, let opened { return opened }
        let collection = opened ?? MemoryCollection(number: collectionsMade + 1, name: name, format: format)
        let old = collection.snapshot
        var records = old
        records.setIndexes((0..<specification.indexCount).map { Array(specification.index(at: $0)) })
        records.hasSequences = specification.keepsSequences
        changes?.reset()
        let description = changes?.describe(collection, records)
        if !records.hasSequences { old.bySequence?.visitRemovals { changes?.forget($0) } }
        try commit(changes)
        collection.description = description
        usedBytes += records.size - old.size
        collectionsMade = max(collectionsMade, collection.number)
        collection.publish(records)
        collections[name, default: [:]][format] = collection
        return collection
    }

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        guard let dropped = collections[Array(name)] else {
            throw StorageFailure(.notFound, "there is no collection \(String(decoding: name, as: UTF8.self))")
        }
        changes?.reset()
        for collection in dropped.values { changes?.drop(collection) }
        try commit(changes)
        collections[Array(name)] = nil
        for collection in dropped.values {
            usedBytes -= collection.snapshot.size
            // The kit keeps the collection, but its records may go.
            collection.publish(RecordSet())
        }
    }

    func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure) {
        for name in collections.keys { emit(name.span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> MemoryReader {
        MemoryReader()
    }

    func write(_ batch: borrowing WriteBatch<MemoryCollection>) throws(StorageFailure) {
        do throws(StorageFailure) {
            try write(batch, grows: true)
        } catch let error where error.status == .noSpace && !batch.isAtomic && batch.removes {
            // What removes needs no more room than there is.
            try write(batch, grows: false)
        }
    }

    /// - Parameter grows: whether the log has room for what is not a removal.
    private func write(
        _ batch: borrowing WriteBatch<MemoryCollection>, grows: Bool
    ) throws(StorageFailure) {
        var drafts: [ObjectIdentifier: CollectionDraft] = [:]
        var usedBytes = usedBytes
        changes?.reset()
        for position in 0..<batch.count {
            let mutation = batch[position]
            let collection = mutation.collection
            if !grows, mutation.kind != .remove {
                batch.refused(position, .noSpace)
                continue
            }
            // Most batches concern one collection.
            let count = drafts.isEmpty ? min(batch.count, 1024) : 0
            let isApplied = drafts[
                ObjectIdentifier(collection), default: CollectionDraft(of: collection, changes, count: count)
            ].apply(mutation, position, batch, usedBytes: &usedBytes, maximumBytes: maximumBytes)
            if !isApplied, batch.isAtomic {
                changes?.reset()
                return
            }
        }
        try commit(changes)
        publish(drafts, isAtomic: batch.isAtomic)
        self.usedBytes = usedBytes
    }

    /// Has readers see what a batch has made.
    private func publish(_ drafts: [ObjectIdentifier: CollectionDraft], isAtomic: Bool) {
        for draft in drafts.values { draft.publish(isAtomic: isAtomic) }
    }

    func removeExpired(_ request: borrowing ExpiryRequest<MemoryCollection>) throws(StorageFailure) -> Int64? {
        var draft = CollectionDraft(of: request.collection, changes)
        var usedBytes = usedBytes
        changes?.reset()
        let removed = draft.removeExpired(request, usedBytes: &usedBytes)
        try commit(changes)
        draft.publish(isAtomic: false)
        self.usedBytes = usedBytes
        for (index, record) in removed.enumerated() {
            record.withSpan { request.emit(index, id: $0.extracting(record.idRange)) }
        }
        return request.collection.withRecords { $0.nextExpiry }
    }

    func trimHistory(_ request: borrowing TrimRequest<MemoryCollection>) throws(StorageFailure) -> History {
        let collection = request.collection
        let old = collection.snapshot
        var records = old
        guard
            let (history, trimmed) = records.trimHistory(before: request.before, limit: request.limit)
        else { throw StorageFailure(.unsupported, "the collection was not opened with sequence numbers") }
        if trimmed.isEmpty { return history }
        changes?.reset()
        let description = changes?.describe(collection, records)
        for removal in trimmed { changes?.forget(removal) }
        try commit(changes)
        collection.description = description
        usedBytes += records.size - old.size
        collection.publish(records)
        return history
    }

    func takeHistory(_ history: borrowing TakenHistory<MemoryCollection>) throws(StorageFailure) {
        let collection = history.collection
        let old = collection.snapshot
        var records = old
        guard let removals = records.takeHistory(history, number: collection.number) else {
            throw StorageFailure(.unsupported, "the collection was not opened with sequence numbers")
        }
        let growth = records.size - old.size
        guard growth <= 0 || usedBytes + growth <= maximumBytes else {
            throw StorageFailure(.noSpace, "max_bytes, \(maximumBytes), would be exceeded")
        }
        changes?.reset()
        let description = changes?.take(collection, records, history.lastSequence)
        for removal in removals { changes?.remember(removal) }
        try commit(changes)
        collection.description = description
        usedBytes += growth
        collection.publish(records)
    }
}

extension WriteBatch<MemoryCollection> {
    /// Whether there is a removal in it.
    fileprivate var removes: Bool {
        for position in 0..<count where self[position].kind == .remove { return true }
        return false
    }
}
