public import CRUDPluginABI
import Glibc
import Synchronization

/// Makes the function table of the plugin contract from a ``StorageBackend``.
///
/// C functions carry no generic types, so each finds its object through a handle that holds it as `any StorageBackend`
/// or `any StorageReader`; a call costs some nanoseconds over the backend's own work, and copies and allocates nothing.
/// Options are checked before there is a backend, hence the one global: a shared object is one plugin.
public enum PluginTable {
    /// The table for `backend`, for `crudd_plugin_entry` to return; it lives as long as the process.
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
        // Never freed, as the table is not.
        table.pointee.name = UnsafePointer(strdup(backend.name))
        table.pointee.version = UnsafePointer(strdup(backend.version))
        table.pointee.capabilities = backend.capabilities.rawValue
        table.pointee.storage_option = backend.storagePointer.map { UnsafePointer(strdup($0)) }
        table.pointee.setBackendFunctions()
        table.pointee.setCollectionFunctions()
        table.pointee.setReaderFunctions()
        if backend.makesBackups { table.pointee.setBackupFunctions() }
        if backend.capabilities.isSuperset(of: [.shared, .sequences]) { table.pointee.setHistoryFunction() }
        table.pointee.backup_advice = backend.backupAdvice.map { UnsafePointer(strdup($0)) }
        return UnsafePointer(table)
    }
}

// Each `!` below unwraps a pointer that the contract says the host gives.

extension crudd_plugin {
    fileprivate mutating func setBackendFunctions() {
        check_options = { options, failure in
            status(failure) { () throws(StorageFailure) in try exportedBackend().check(options) }
        }
        capabilities_with = { options in
            // The host asks for options that have been found valid.
            (try? exportedBackend().capabilities(withOptions: options).rawValue) ?? 0
        }
        open = { options, host, call, backend, opened, failure in
            status(failure) { () throws(StorageFailure) in
                let new = try exportedBackend().open(options, Host(host!), CallContext(call!))
                let handle = BackendHandle(new)
                handle.describe(&opened!.pointee)
                backend!.pointee = handle.pointer()
            }
        }
        close = { backend in
            // The host hands the pointer back for the last time.
            let handle = unsafe Unmanaged<BackendHandle>.fromOpaque(UnsafeRawPointer(backend!))
            handle.takeRetainedValue().backend.close()
        }
        write = { backend, call, request, failure in
            status(failure) { () throws(StorageFailure) in
                try BackendHandle.of(backend).backend.write(fullStruct(request!), CallContext(call!))
            }
        }
        remove_expired = { backend, call, request, nextExpiry, failure in
            status(failure) { () throws(StorageFailure) in
                nextExpiry!.pointee = try BackendHandle.of(backend).backend.removeExpired(
                    fullStruct(request!), CallContext(call!))
            }
        }
        trim_history = { backend, call, request, history, failure in
            status(failure) { () throws(StorageFailure) in
                let backend = BackendHandle.of(backend).backend
                try backend.trimHistory(fullStruct(request!), CallContext(call!)).report(to: &history!.pointee)
            }
        }
        take_history = { backend, call, request, failure in
            status(failure) { () throws(StorageFailure) in
                try BackendHandle.of(backend).backend.takeHistory(fullStruct(request!), CallContext(call!))
            }
        }
        idle = { backend, call in BackendHandle.of(backend).backend.idle(CallContext(call!)) }
    }

    fileprivate mutating func setCollectionFunctions() {
        open_collection = { backend, call, specification, collection, failure in
            status(failure) { () throws(StorageFailure) in
                let handle = BackendHandle.of(backend)
                let opened = try handle.backend.open(fullStruct(specification!), CallContext(call!))
                collection!.pointee = handle.keep(opened)
            }
        }
        drop_collection = { backend, call, name, failure in
            status(failure) { () throws(StorageFailure) in
                let backend = BackendHandle.of(backend).backend
                try backend.dropCollection(named: UnsafeRawBufferPointer(name), CallContext(call!))
            }
        }
        list_collections = { backend, call, emit, context, failure in
            status(failure) { () throws(StorageFailure) in
                try BackendHandle.of(backend).backend.listCollections(CallContext(call!)) { name in
                    // The host reads the name before `emit` returns.
                    unsafe name.withUnsafeBytes { emit!(context, crudd_bytes($0)) }
                }
            }
        }
    }

    fileprivate mutating func setBackupFunctions() {
        begin_backup = { backend, call, path, backup, failure in
            status(failure) { () throws(StorageFailure) in
                let path = String(decoding: UnsafeRawBufferPointer(path), as: UTF8.self)
                let begun = try BackendHandle.of(backend).backend.beginBackup(to: path, CallContext(call!))
                backup!.pointee = BackupHandle(begun).pointer()
            }
        }
        step_backup = { backup, call, progress, failure in
            status(failure) { () throws(StorageFailure) in
                let step = try BackupHandle.of(backup).backup.step(CallContext(call!))
                // The host has made it as large as it says, and knows these fields.
                progress!.pointee.is_complete = step.isComplete ? 1 : 0
                progress!.pointee.bytes = step.bytes
                progress!.pointee.total_bytes = step.totalBytes
            }
        }
        end_backup = { backup in
            // The host hands the pointer back for the last time.
            let handle = unsafe Unmanaged<BackupHandle>.fromOpaque(UnsafeRawPointer(backup!))
            handle.takeRetainedValue().backup.end()
        }
    }

    fileprivate mutating func setHistoryFunction() {
        read_history = { reader, call, collection, history, failure in
            status(failure) { () throws(StorageFailure) in
                let found = try ReaderHandle.of(reader).reader.readHistory(collection, CallContext(call!))
                found.report(to: &history!.pointee)
            }
        }
    }

    fileprivate mutating func setReaderFunctions() {
        open_reader = { backend, reader, failure in
            status(failure) { () throws(StorageFailure) in
                reader!.pointee = try BackendHandle.of(backend).backend.makeReader().pointer()
            }
        }
        close_reader = { reader in
            // The host hands the pointer back for the last time.
            let handle = unsafe Unmanaged<ReaderHandle>.fromOpaque(UnsafeRawPointer(reader!))
            handle.takeRetainedValue().reader.close()
        }
        end_snapshot = { reader in ReaderHandle.of(reader).reader.endSnapshot() }
        data_version = { reader in ReaderHandle.of(reader).reader.dataVersion() }
        read = { reader, call, request, failure in
            status(failure) { () throws(StorageFailure) in
                try ReaderHandle.of(reader).reader.read(fullStruct(request!), CallContext(call!))
            }
        }
        scan = { reader, call, request, failure in
            status(failure) { () throws(StorageFailure) in
                let handle = ReaderHandle.of(reader)
                try handle.reader.scan(fullStruct(request!), CallContext(call!), handle.capabilities)
            }
        }
        count = { reader, call, request, count, failure in
            status(failure) { () throws(StorageFailure) in
                let handle = ReaderHandle.of(reader)
                count!.pointee = try handle.reader.count(
                    fullStruct(request!), CallContext(call!), handle.capabilities)
            }
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

/// The status of a call, which reports what it throws.
private func status(
    _ failure: UnsafeMutablePointer<crudd_failure>?, _ call: () throws(StorageFailure) -> Void
) -> crudd_status {
    do {
        try call()
        return crudd_status(CRUDD_OK)
    } catch {
        return error.report(to: failure)
    }
}
