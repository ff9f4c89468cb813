import CRUDPluginKit

/// A suite of Foundation's UserDefaults: a key for each record.
final class UserDefaultsBackend: StorageBackend {
    static let name = "userdefaults"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [.transactions, .durable, .expiry]
    static let storageOption: UserDefaultsOptions.Key? = .suite
    static let backupAdvice: String? = "copy its property list"

    private let suite: Suite
    /// Open collections by name and then format, as bytes: the host tells texts apart that Swift takes for equal.
    private var collections: [[UInt8]: [SuiteKey.Format: UserDefaultsCollection]] = [:]

    init(options: UserDefaultsOptions, host: Host, call: CallContext) throws(StorageFailure) {
        suite = try Suite(named: options.suite, host: host, call: call)
    }

    var lastSequence: UInt64 { suite.sequenceCeiling }

    var identity: UInt64 { suite.identity }

    /// Leaves a copy of what is there now. The lock ends with the last reference to the suite.
    func close() {
        suite.makeCopy()
    }

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> UserDefaultsCollection {
        let name = Array(specification.name)
        let formatName = String(decoding: specification.format, as: UTF8.self)
        guard let format = SuiteKey.Format(rawValue: formatName) else {
            throw StorageFailure(.unsupported, "unknown format \(formatName)")
        }
        let content = try suite.current(specification.call)
        if !content.contains(name, format), !specification.creates {
            throw StorageFailure(
                .notFound, "there is no collection \(String(decoding: name, as: UTF8.self)) of format \(formatName)")
        }
        if specification.creates, !content.contains(name, format) || !content.hasFormats(name) {
            var draft = SuiteDraft(of: content)
            draft.add(format, to: name)
            try suite.store(draft)
        }
        if let collection = collections[name]?[format] { return collection }
        let collection = UserDefaultsCollection(name: name, format: format)
        collections[name, default: [:]][format] = collection
        return collection
    }

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        let bytes = Array(name)
        let content = try suite.current(call)
        guard content.names.contains(bytes) else {
            throw StorageFailure(.notFound, "there is no collection \(String(decoding: name, as: UTF8.self))")
        }
        var draft = SuiteDraft(of: content)
        draft.remove(bytes, keys: try suite.keys(of: bytes))
        try suite.store(draft)
        collections[bytes] = nil
    }

    func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure) {
        for name in try suite.current(call).names { emit(name.span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> UserDefaultsReader {
        UserDefaultsReader(suite)
    }

    /// The batch is one change of the list, which a crash undoes whole or not at all: hence transactions.
    func write(_ batch: borrowing WriteBatch<UserDefaultsCollection>) throws(StorageFailure) {
        var draft = SuiteDraft(of: try suite.current(batch.call))
        for position in 0..<batch.count {
            if !draft.apply(batch[position], position, batch), batch.isAtomic { return }
        }
        if batch.isInterrupted { throw .interrupted }
        try suite.store(draft)
    }

    func removeExpired(_ request: borrowing ExpiryRequest<UserDefaultsCollection>) throws(StorageFailure) -> Int64? {
        var draft = SuiteDraft(of: try suite.current(request.call))
        let removed = draft.removeExpired(request)
        try suite.store(draft)
        for (index, id) in removed.enumerated() { request.emit(index, id: id.span.bytes) }
        return draft.content[request.collection].nextExpiry
    }

    func idle(_ call: CallContext) {
        suite.makeCopy()
    }
}
