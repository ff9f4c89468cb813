import CRUDPluginABI

/// The function table of the plugin contract over a child process.
///
/// A backend and its readers are the ``Child``; a collection is a ``ChildCollection``, which the child keeps. Opening
/// needs more than the contract hands over, so that ``Plugin`` does that itself.
enum ChildTable {
    /// The one table of all children; it lives as long as the process.
    // The table is never written again.
    static nonisolated(unsafe) let table: UnsafePointer<crudd_plugin> = {
        var table = crudd_plugin.sized()
        table.abi_version = CRUDD_ABI_VERSION
        table.setBackendFunctions()
        table.setCollectionFunctions()
        table.setReaderFunctions()
        table.setBackupFunctions()
        return PluginTable.keep(table)
    }()

    /// The pointer that stands for a child until `close`.
    static func retained(_ child: Child) -> OpaquePointer { OpaquePointer(Unmanaged.passRetained(child).toOpaque()) }

    /// The child behind a backend or a reader.
    static func child(_ pointer: OpaquePointer?) -> Child {
        // The host hands over what `open` or `open_reader` gave it, and not after `close`.
        unsafe Unmanaged<Child>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }

    /// The number by which its child knows a collection.
    static func number(of collection: OpaquePointer?) -> Int {
        // The host hands over what `open_collection` gave it; the child keeps it.
        unsafe Unmanaged<ChildCollection>.fromOpaque(UnsafeRawPointer(collection!)).takeUnretainedValue().number
    }

    /// Makes what a call throws its status and its failure.
    static func status(
        _ failure: UnsafeMutablePointer<crudd_failure>?, _ call: () throws(PluginFailure) -> Void
    ) -> crudd_status {
        do throws(PluginFailure) {
            try call()
            return crudd_status(CRUDD_OK)
        } catch {
            failure?.pointee.set(error)
            return crudd_status(error.status)
        }
    }
}

extension Child {
    /// The number by which the child knows a collection that it has opened.
    package func number(of collection: OpaquePointer?) -> Int { ChildTable.number(of: collection) }
}

// Each `!` below unwraps a pointer that the contract says the host gives.

extension crudd_plugin {
    fileprivate mutating func setBackendFunctions() {
        close = { backend in
            // The host hands the pointer back for the last time.
            unsafe Unmanaged<Child>.fromOpaque(UnsafeRawPointer(backend!)).takeRetainedValue().close()
        }
        write = { backend, call, request, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).write(.read(request!), .read(call!))
            }
        }
        remove_expired = { backend, call, request, nextExpiry, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                nextExpiry!.pointee = try ChildTable.child(backend).removeExpired(.read(request!), .read(call!))
            }
        }
        trim_history = { backend, call, request, history, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                let found = try ChildTable.child(backend).trimHistory(.read(request!), .read(call!))
                // The host has made it as large as it says.
                history!.pointee.identity = found.identity
                history!.pointee.forgotten = found.forgotten
                history!.pointee.trimmed = found.trimmed
            }
        }
        take_history = { backend, call, request, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).takeHistory(.read(request!), .read(call!))
            }
        }
        idle = { backend, _ in ChildTable.child(backend).idle() }
    }

    fileprivate mutating func setCollectionFunctions() {
        open_collection = { backend, _, specification, collection, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                let opened = try ChildTable.child(backend).openCollection(.read(specification!))
                collection!.pointee = OpaquePointer(Unmanaged.passUnretained(opened).toOpaque())
            }
        }
        drop_collection = { backend, _, name, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).dropCollection(named: name.buffer)
            }
        }
        list_collections = { backend, _, emit, context, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).listCollections { emit!(context, $0) }
            }
        }
    }

    fileprivate mutating func setBackupFunctions() {
        begin_backup = { backend, _, path, backup, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).beginBackup(to: path.buffer)
                // The child has one at a time.
                backup!.pointee = backend
            }
        }
        step_backup = { backup, _, progress, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                let step = try ChildTable.child(backup).stepBackup()
                // The host has made it as large as it says.
                progress!.pointee.is_complete = step.is_complete
                progress!.pointee.bytes = step.bytes
                progress!.pointee.total_bytes = step.total_bytes
            }
        }
        end_backup = { backup in ChildTable.child(backup).endBackup() }
    }

    fileprivate mutating func setReaderFunctions() {
        open_reader = { backend, reader, _ in
            reader!.pointee = backend
            return crudd_status(CRUDD_OK)
        }
        close_reader = { _ in }
        read = { reader, call, request, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(reader).read(.read(request!), .read(call!))
            }
        }
        scan = { reader, call, request, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                try ChildTable.child(reader).scan(.read(request!), .read(call!))
            }
        }
        count = { reader, call, request, count, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                count!.pointee = try ChildTable.child(reader).count(.read(request!), .read(call!))
            }
        }
        read_history = { reader, call, collection, history, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                let found = try ChildTable.child(reader).readHistory(of: collection, .read(call!))
                // The host has made it as large as it says.
                history!.pointee.identity = found.identity
                history!.pointee.forgotten = found.forgotten
                history!.pointee.end = found.end
                history!.pointee.next = found.next
            }
        }
        data_version = { reader in ChildTable.child(reader).dataVersion() }
    }
}
