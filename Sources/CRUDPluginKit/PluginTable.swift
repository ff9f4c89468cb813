public import CRUDPluginABI
import Synchronization

/// Makes the function table of the plugin contract from a ``StorageBackend``.
///
/// C functions carry no generic types, so each finds its object through a handle that holds it as `any StorageBackend`
/// or `any StorageReader`; a call costs some nanoseconds over the backend's own work, and copies and allocates nothing.
/// Options are checked before there is a backend, hence the one global: a shared object is one plugin.
public enum PluginTable {
    /// The table for `backend`, for `crudd_plugin_entry` to answer; it lives as long as the process.
    ///
    /// - Returns: nil if the same shared object has exported another type before.
    public static func export<Backend: StorageBackend>(_ backend: Backend.Type) -> UnsafePointer<crudd_plugin>? {
        let export = exported.withLock { exported in
            let export = exported ?? Export(backend: backend, table: makeTable(backend))
            exported = export
            return export
        }
        return export.backend == backend ? export.table : nil
    }

    /// What ``export(_:)`` was first given, and its table.
    // The table is never written again, and a metatype is immutable.
    fileprivate struct Export: @unchecked Sendable {
        let backend: any StorageBackend.Type
        let table: UnsafePointer<crudd_plugin>
    }

    fileprivate static let exported = Mutex<Export?>(nil)

    private static func makeTable(_ backend: any StorageBackend.Type) -> UnsafePointer<crudd_plugin> {
        let table = UnsafeMutablePointer<crudd_plugin>.allocate(capacity: 1)
        table.initialize(to: crudd_plugin())
        table.pointee.struct_size = UInt32(MemoryLayout<crudd_plugin>.size)
        table.pointee.abi_version = CRUDD_ABI_VERSION
        table.pointee.name = immortalCopy(backend.name)
        table.pointee.version = immortalCopy(backend.version)
        table.pointee.capabilities = backend.capabilities.rawValue
        table.pointee.setBackendFunctions()
        table.pointee.setCollectionFunctions()
        table.pointee.setReaderFunctions()
        if backend.capabilities.contains(.queries) { table.pointee.setQueryFunction() }
        return UnsafePointer(table)
    }

    /// A terminated copy of `text` that is never freed, as the table is not.
    private static func immortalCopy(_ text: String) -> UnsafePointer<CChar> {
        let characters = Array(text.utf8CString)
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: characters.count)
        copy.initialize(from: characters, count: characters.count)
        return UnsafePointer(copy)
    }
}

// Each `!` below unwraps a pointer that the contract says the host gives.

extension crudd_plugin {
    fileprivate mutating func setBackendFunctions() {
        check_options = { options, failure in
            answer(failure) { () throws(StorageFailure) in try exportedBackend().check(options) }
        }
        open = { options, host, backend, failure in
            answer(failure) { () throws(StorageFailure) in
                let opened = try exportedBackend().open(options, Host(host!))
                backend!.pointee = BackendHandle(opened).pointer()
            }
        }
        close = { backend in
            // The host hands the pointer back for the last time.
            let handle = unsafe Unmanaged<BackendHandle>.fromOpaque(UnsafeRawPointer(backend!))
            handle.takeRetainedValue().backend.close()
        }
        write = { backend, request, failure in
            answer(failure) { () throws(StorageFailure) in try BackendHandle.of(backend).backend.write(request!) }
        }
        idle = { backend in BackendHandle.of(backend).backend.idle() }
        backend_capabilities = { backend in BackendHandle.of(backend).backend.capabilities.rawValue }
    }

    fileprivate mutating func setCollectionFunctions() {
        open_collection = { backend, specification, collection, failure in
            answer(failure) { () throws(StorageFailure) in
                let handle = BackendHandle.of(backend)
                let opened = try handle.backend.open(CollectionSpecification(specification!))
                collection!.pointee = handle.keep(opened)
            }
        }
        drop_collection = { backend, name, failure in
            answer(failure) { () throws(StorageFailure) in
                try BackendHandle.of(backend).backend.dropCollection(named: UnsafeRawBufferPointer(name))
            }
        }
        list_collections = { backend, emit, context, failure in
            answer(failure) { () throws(StorageFailure) in
                try BackendHandle.of(backend).backend.listCollections { name in
                    // The host reads the name before `emit` returns.
                    unsafe name.withUnsafeBytes { emit!(context, crudd_bytes($0)) }
                }
            }
        }
    }

    fileprivate mutating func setReaderFunctions() {
        open_reader = { backend, reader, failure in
            answer(failure) { () throws(StorageFailure) in
                reader!.pointee = ReaderHandle(try BackendHandle.of(backend).backend.makeReader()).pointer()
            }
        }
        close_reader = { reader in
            // The host hands the pointer back for the last time.
            let handle = unsafe Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(reader!))
            handle.takeRetainedValue().reader.close()
        }
        end_snapshot = { reader in ReaderHandle.of(reader).reader.endSnapshot() }
        read = { reader, request, failure in
            answer(failure) { () throws(StorageFailure) in try ReaderHandle.of(reader).reader.read(request!) }
        }
        scan = { reader, request, failure in
            answer(failure) { () throws(StorageFailure) in try ReaderHandle.of(reader).reader.scan(request!) }
        }
        count = { reader, request, count, failure in
            answer(failure) { () throws(StorageFailure) in
                count!.pointee = try ReaderHandle.of(reader).reader.count(request!)
            }
        }
    }

    fileprivate mutating func setQueryFunction() {
        query = { reader, request, failure in
            answer(failure) { () throws(StorageFailure) in try ReaderHandle.of(reader).reader.query(request!) }
        }
    }
}

/// The type that this shared object has exported.
private func exportedBackend() throws(StorageFailure) -> any StorageBackend.Type {
    guard let export = PluginTable.exported.withLock({ $0 }) else {
        throw StorageFailure(.internal, "the function table has not been exported")
    }
    return export.backend
}

/// Makes what a call throws into its status and failure.
private func answer(
    _ failure: UnsafeMutablePointer<crudd_failure>?, _ call: () throws(StorageFailure) -> Void
) -> crudd_status {
    do {
        try call()
        return crudd_status(CRUDD_OK)
    } catch {
        return error.report(to: failure)
    }
}
