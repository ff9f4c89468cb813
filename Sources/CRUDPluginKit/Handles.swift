import CRUDPluginABI

// Each `!` below unwraps a pointer that the contract says the host gives.

/// What a `crudd_backend *` points to: a backend and the collections that live as long as it.
final class BackendHandle {
    let backend: any StorageBackend
    private var collections: [ObjectIdentifier: AnyObject] = [:]
    private let commitCounterPath: UnsafeMutableBufferPointer<UInt8>

    init(_ backend: any StorageBackend) {
        self.backend = backend
        let path = Array((backend.commitCounter?.path ?? "").utf8)
        commitCounterPath = .allocate(capacity: path.count)
        _ = commitCounterPath.initialize(from: path)
    }

    deinit { commitCounterPath.deallocate() }

    /// Tells the host of the backend.
    func describe(_ opened: inout crudd_opened) {
        backend.describe(&opened)
        opened.commit_counter_path = crudd_bytes(UnsafeRawBufferPointer(commitCounterPath))
        opened.commit_counter_offset = backend.commitCounter?.offset ?? 0
    }

    /// Keeps `collection` until the backend is closed and returns the pointer that stands for it.
    func keep(_ collection: AnyObject) -> OpaquePointer {
        collections[ObjectIdentifier(collection)] = collection
        return OpaquePointer(Unmanaged.passUnretained(collection).toOpaque())
    }

    /// The pointer for the host; it owns the handle until `close`.
    func pointer() -> OpaquePointer {
        OpaquePointer(Unmanaged.passRetained(self).toOpaque())
    }

    static func of(_ pointer: OpaquePointer?) -> BackendHandle {
        // The host hands over what `open` gave it, and not after `close`.
        unsafe Unmanaged<BackendHandle>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }
}

/// What a `crudd_reader *` points to.
final class ReaderHandle {
    let reader: any StorageReader
    /// Those that the plugin declares.
    let capabilities: Capabilities

    init(_ reader: any StorageReader, _ capabilities: Capabilities) {
        self.reader = reader
        self.capabilities = capabilities
    }

    /// The pointer for the host; it owns the handle until `close_reader`.
    func pointer() -> OpaquePointer {
        OpaquePointer(Unmanaged.passRetained(self).toOpaque())
    }

    static func of(_ pointer: OpaquePointer?) -> ReaderHandle {
        // The host hands over what `open_reader` gave it, and not after `close_reader`.
        unsafe Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }
}

/// What a `crudd_backup *` points to.
final class BackupHandle {
    let backup: any StorageBackup

    init(_ backup: any StorageBackup) {
        self.backup = backup
    }

    /// The pointer for the host; it owns the handle until `end_backup`.
    func pointer() -> OpaquePointer {
        OpaquePointer(Unmanaged.passRetained(self).toOpaque())
    }

    static func of(_ pointer: OpaquePointer?) -> BackupHandle {
        // The host hands over what `begin_backup` gave it, and not after `end_backup`.
        unsafe Unmanaged<BackupHandle>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }
}

// Each opens an existential, so that the rest of a call knows its types.

extension StorageBackend {
    static func check(_ options: crudd_bytes) throws(StorageFailure) {
        _ = try Options(text: UnsafeRawBufferPointer(options))
    }

    static func capabilities(withOptions options: crudd_bytes) throws(StorageFailure) -> Capabilities {
        capabilities.intersection(capabilities(with: try Options(text: UnsafeRawBufferPointer(options))))
    }

    /// A JSON pointer to the option that says where the storage is.
    static var storagePointer: String? { storageOption.map { jsonPointer(to: $0.rawValue) } }

    static func open(
        _ options: crudd_bytes, _ host: Host, _ call: CallContext
    ) throws(StorageFailure) -> any StorageBackend {
        try Self(options: Options(text: UnsafeRawBufferPointer(options)), host: host, call: call)
    }

    /// What the host learns of an open backend.
    func describe(_ opened: inout crudd_opened) {
        opened.capabilities = capabilities.rawValue
        opened.readers = UInt32(clamping: preferredReaders)
        opened.last_sequence = lastSequence
        opened.identity = identity
    }

    func open(_ specification: crudd_collection_spec, _ call: CallContext) throws(StorageFailure) -> AnyObject {
        let specification = CollectionSpecification(specification, call)
        if specification.indexCount > 0 { try Self.capabilities.require(.indexes, for: "indexes") }
        if specification.keepsSequences { try Self.capabilities.require(.sequences, for: "sequence numbers") }
        return try openCollection(specification)
    }

    func makeReader() throws(StorageFailure) -> ReaderHandle {
        ReaderHandle(try openReader(), Self.capabilities)
    }

    func write(_ request: crudd_write, _ call: CallContext) throws(StorageFailure) {
        try write(WriteBatch(request, call, Self.capabilities))
    }

    /// - Returns: the lowest expiry that is left; 0: none.
    func removeExpired(_ request: crudd_expire, _ call: CallContext) throws(StorageFailure) -> Int64 {
        try Self.capabilities.require(.expiry, for: "expiry")
        return try removeExpired(ExpiryRequest(request, call)) ?? 0
    }

    func trimHistory(_ request: crudd_trim, _ call: CallContext) throws(StorageFailure) -> History {
        try Self.capabilities.require(.sequences, for: "sequence numbers")
        return try trimHistory(TrimRequest(request, call))
    }

    func takeHistory(_ request: crudd_taken_history, _ call: CallContext) throws(StorageFailure) {
        try Self.capabilities.require(.takesHistory, for: "histories of other collections")
        try takeHistory(TakenHistory(request, call))
    }
}

extension StorageReader {
    func read(_ request: crudd_read, _ call: CallContext) throws(StorageFailure) {
        try read(ReadRequest(request, call), from: collection(request.collection))
    }

    func scan(_ request: crudd_scan, _ call: CallContext, _ capabilities: Capabilities) throws(StorageFailure) {
        let range = try RecordRange(request.range!, capabilities)
        var emittedCount = 0
        try withUnsafeMutablePointer(to: &emittedCount) { (emittedCount) throws(StorageFailure) in
            let scan = ScanRequest(request, range, call, emittedCount: emittedCount)
            try self.scan(scan, of: collection(request.collection))
        }
    }

    func count(
        _ request: crudd_count, _ call: CallContext, _ capabilities: Capabilities
    ) throws(StorageFailure) -> UInt64 {
        let range = try RecordRange(request.range!, capabilities)
        return try count(CountRequest(request, range, call), in: collection(request.collection))
    }

    func readHistory(_ pointer: OpaquePointer?, _ call: CallContext) throws(StorageFailure) -> History {
        try readHistory(of: collection(pointer), call)
    }

    private func collection(_ pointer: OpaquePointer?) -> Collection {
        // The pointer is one that `open_collection` made from a `Collection` and keeps alive.
        unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }
}
