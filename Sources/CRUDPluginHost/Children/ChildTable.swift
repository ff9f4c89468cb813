import CRUDPluginABI

/// The function table of the plugin contract over a child process.
///
/// A backend and its readers are the ``Child``; a collection is a ``ChildCollection``, which the child keeps. Opening
/// takes more than the contract hands over, so that ``Plugin`` does that itself.
enum ChildTable {
    /// The one table of all children; it lives as long as the process.
    // The table is never written again.
    static nonisolated(unsafe) let table: UnsafePointer<crudd_plugin> = {
        let table = UnsafeMutablePointer<crudd_plugin>.allocate(capacity: 1)
        table.initialize(to: crudd_plugin())
        table.pointee.struct_size = UInt32(MemoryLayout<crudd_plugin>.size)
        table.pointee.abi_version = CRUDD_ABI_VERSION
        table.pointee.setBackendFunctions()
        table.pointee.setCollectionFunctions()
        table.pointee.setReaderFunctions()
        return UnsafePointer(table)
    }()

    /// The child behind a backend or a reader.
    static func child(_ pointer: OpaquePointer?) -> Child {
        // The host hands over what ``Plugin`` or `open_reader` gave it, and not after `close`.
        unsafe Unmanaged<Child>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }

    static func collection(_ pointer: OpaquePointer?) -> ChildCollection {
        // The host hands over what `open_collection` gave it; the child keeps it.
        unsafe Unmanaged<ChildCollection>.fromOpaque(UnsafeRawPointer(pointer!)).takeUnretainedValue()
    }

    /// Makes what a call throws into its status and failure.
    static func answer(
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

extension crudd_failure {
    fileprivate mutating func set(_ failure: PluginFailure) {
        Self.copy(failure.message, to: &message)
        Self.copy(failure.pointer, to: &pointer)
    }

    /// Copies a text into a C array of characters, as much as fits before its terminator.
    private static func copy<Characters>(_ text: String, to characters: inout Characters) {
        withUnsafeMutableBytes(of: &characters) { bytes in
            let text = text.utf8.prefix(bytes.count - 1)
            bytes.copyBytes(from: text)
            bytes[text.count] = 0
        }
    }
}

// Each `!` below unwraps a pointer that the contract says the host gives.

extension crudd_plugin {
    fileprivate mutating func setBackendFunctions() {
        close = { backend in
            // The host hands the pointer back for the last time.
            unsafe Unmanaged<Child>.fromOpaque(UnsafeRawPointer(backend!)).takeRetainedValue().close()
        }
        write = { backend, request, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).write(request!.pointee)
            }
        }
        idle = { backend in ChildTable.child(backend).idle() }
        backend_capabilities = { backend in ChildTable.child(backend).capabilities.rawValue }
    }

    fileprivate mutating func setCollectionFunctions() {
        open_collection = { backend, specification, collection, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                let opened = try ChildTable.child(backend).openCollection(specification!.pointee)
                collection!.pointee = OpaquePointer(Unmanaged.passUnretained(opened).toOpaque())
            }
        }
        drop_collection = { backend, name, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).call("dropCollection", for: .writing) { request in
                    request.raw(#""name":"#)
                    request.string(name.buffer)
                }
            }
        }
        list_collections = { backend, emit, context, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                try ChildTable.child(backend).listCollections { emit!(context, crudd_bytes($0)) }
            }
        }
    }

    fileprivate mutating func setReaderFunctions() {
        open_reader = { backend, reader, _ in
            reader!.pointee = backend
            return crudd_status(CRUDD_OK)
        }
        close_reader = { _ in }
        read = { reader, request, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                try ChildTable.child(reader).read(request!.pointee)
            }
        }
        scan = { reader, request, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                try ChildTable.child(reader).scan(request!.pointee)
            }
        }
        query = { reader, request, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                try ChildTable.child(reader).query(request!.pointee)
            }
        }
        count = { reader, request, count, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                count!.pointee = try ChildTable.child(reader).count(request!.pointee)
            }
        }
    }
}
