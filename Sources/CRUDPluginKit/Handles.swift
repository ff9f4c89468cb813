import CRUDPluginABI

/// What a `crudd_backend *` points to: a backend and the collections that live as long as it.
final class BackendHandle {
    let backend: any StorageBackend
    private var collections: [ObjectIdentifier: AnyObject] = [:]

    init(_ backend: any StorageBackend) {
        self.backend = backend
    }

    /// Keeps `collection` until the backend is closed and answers the pointer that stands for it.
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

    init(_ reader: any StorageReader) {
        self.reader = reader
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

// Each opens an existential, so that the rest of a call knows its types.

extension StorageBackend {
    static func check(_ options: crudd_bytes) throws(StorageFailure) {
        _ = try Options(text: UnsafeRawBufferPointer(options))
    }

    static func open(_ options: crudd_bytes, _ host: Host) throws(StorageFailure) -> any StorageBackend {
        try Self(options: Options(text: UnsafeRawBufferPointer(options)), host: host)
    }

    func open(_ specification: borrowing CollectionSpecification) throws(StorageFailure) -> AnyObject {
        try openCollection(specification)
    }

    func makeReader() throws(StorageFailure) -> any StorageReader {
        try openReader()
    }

    func write(_ request: UnsafePointer<crudd_write>) throws(StorageFailure) {
        try write(WriteBatch(request))
    }
}

extension StorageReader {
    func read(_ request: UnsafePointer<crudd_read>) throws(StorageFailure) {
        try read(ReadRequest(request), from: collection(request.pointee.collection))
    }

    func scan(_ request: UnsafePointer<crudd_scan>) throws(StorageFailure) {
        try scan(ScanRequest(request), of: collection(request.pointee.collection))
    }

    func count(_ request: UnsafePointer<crudd_count>) throws(StorageFailure) -> UInt64 {
        let collection = collection(request.pointee.collection)
        guard request.pointee.filter.size == 0 else {
            return try count(matching: CountRequest(request), in: collection)
        }
        return try count(prefix: UnsafeRawBufferPointer(request.pointee.prefix), in: collection)
    }

    func query(_ request: UnsafePointer<crudd_query>) throws(StorageFailure) {
        try query(QueryRequest(request), of: collection(request.pointee.collection))
    }

    private func collection(_ pointer: OpaquePointer?) -> Collection {
        // The pointer is one that `open_collection` made from a `Collection` and keeps alive.
        unsafe Unmanaged<Collection>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }
}
