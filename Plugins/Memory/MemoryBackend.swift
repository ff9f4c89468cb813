import CRUDPluginKit

/// Records in memory, gone with the backend.
final class MemoryBackend: StorageBackend {
    static let name = "memory"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [
        .readsConcurrently, .readsFast, .transactions, .indexes, .sequences, .expiry,
    ]

    private let maximumBytes: Int
    /// What all records count.
    private var usedBytes = 0
    /// Collections by name and then format, as bytes: the host tells texts apart that Swift takes for equal.
    private var collections: [[UInt8]: [[UInt8]: MemoryCollection]] = [:]

    init(options: MemoryOptions, host: Host, call: CallContext) throws(StorageFailure) {
        maximumBytes = options.maximumBytes ?? .max
    }

    /// Nothing is there when the backend is opened.
    var lastSequence: UInt64 { 0 }

    func close() {}

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
        let collection = opened ?? MemoryCollection()
        var records = collection.snapshot
        records.setIndexes((0..<specification.indexCount).map { Array(specification.index(at: $0)) })
        usedBytes -= records.size
        records.hasSequences = specification.keepsSequences
        usedBytes += records.size
        collection.publish(records)
        collections[name, default: [:]][format] = collection
        return collection
    }

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        guard let dropped = collections.removeValue(forKey: Array(name)) else {
            throw StorageFailure(.notFound, "there is no collection \(String(decoding: name, as: UTF8.self))")
        }
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
        var drafts: [ObjectIdentifier: CollectionDraft] = [:]
        var usedBytes = usedBytes
        for position in 0..<batch.count {
            let mutation = batch[position]
            let collection = mutation.collection
            let isApplied = drafts[ObjectIdentifier(collection), default: CollectionDraft(of: collection)]
                .apply(mutation, position, batch, usedBytes: &usedBytes, maximumBytes: maximumBytes)
            if !isApplied, batch.isAtomic { return }
        }
        for draft in drafts.values { draft.publish() }
        self.usedBytes = usedBytes
    }

    func removeExpired(_ request: borrowing ExpiryRequest<MemoryCollection>) throws(StorageFailure) -> Int64? {
        var draft = CollectionDraft(of: request.collection)
        let (removed, nextExpiry) = draft.removeExpired(request, usedBytes: &usedBytes)
        draft.publish()
        for (index, record) in removed.enumerated() {
            request.emit(index, id: record.bytes.span.bytes.extracting(record.idRange))
        }
        return nextExpiry
    }

    func trimHistory(_ request: borrowing TrimRequest<MemoryCollection>) throws(StorageFailure) -> History {
        var records = request.collection.snapshot
        usedBytes -= records.size
        defer { usedBytes += records.size }
        guard let history = records.trimHistory(before: request.before, limit: request.limit) else {
            throw StorageFailure(.unsupported, "the collection was not opened with sequence numbers")
        }
        if history.trimmed > 0 { request.collection.publish(records) }
        return history
    }
}
