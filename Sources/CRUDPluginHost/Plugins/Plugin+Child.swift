package import CRUDPluginABI
package import Logging

/// A plugin that runs in children of its own.
extension Plugin {
    /// Whether it runs in a child process.
    package var isChild: Bool { command != nil }

    /// Whether the child is a command of the configuration, not a plugin.
    package var isCommand: Bool {
        if case .executable = command?.program { true } else { false }
    }

    /// A plugin for one backend, which runs it in a child process. A child is asked at once what it can do, and to check
    /// the backend's options, without touching storage.
    ///
    /// - Returns: the plugin, and why the child could not be asked, if it could not: it died or did not answer, which the
    ///   next one need not.
    /// - Throws: ``PluginFailure`` that is final: the file, its version or the options.
    package static func inChild(
        _ command: ChildCommand, options: [UInt8], logger: Logger
    ) throws(PluginFailure) -> (plugin: Plugin, doubt: String?) {
        let log = PluginLog(backend: command.backend, logger: logger)
        // A file that is not to be used is a fault whatever a child would say.
        let file: PluginFile
        do throws(PluginFault) {
            file = try command.file()
        } catch {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: error.description, pointer: "")
        }
        do throws(PluginFailure) {
            let child = try Child(command, host: HostReference(pointer: log.pointer)) {}
            defer { child.close() }
            try child.check(options: options)
            let greeting = child.greeting
            return (
                Plugin(command, file, version: greeting.version, capabilities: greeting.capabilities), nil
            )
        } catch {
            if error.isFinal { throw error }
            return (Plugin(command, file, version: "", capabilities: []), error.message)
        }
    }

    private init(_ command: ChildCommand, _ file: PluginFile, version: String, capabilities: Capabilities) {
        self.init(
            name: command.name, path: file.path, version: version, capabilities: capabilities, table: ChildTable.table,
            command: command, identity: file.identity)
    }

    /// Opens storage.
    ///
    /// - Parameters:
    ///   - host: lives until the storage is closed.
    ///   - lost: called, on any thread, when a child has ended by itself.
    func open(
        options: [UInt8], host: UnsafePointer<crudd_host>, _ failure: borrowing FailureReport,
        lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) -> OpaquePointer {
        guard let command else {
            var opened: OpaquePointer?
            let status = options.withUnsafeBufferPointer {
                table.pointee.open(crudd_bytes($0), host, &opened, failure.pointer)
            }
            try failure.check(status)
            guard let opened else {
                throw PluginFailure(status: CRUDD_INTERNAL, message: "opened nothing", pointer: "")
            }
            return opened
        }
        let child = try Child(command, host: HostReference(pointer: host), lost: lost)
        do throws(PluginFailure) {
            try child.open(options: options)
        } catch {
            child.close()
            throw error
        }
        return OpaquePointer(Unmanaged.passRetained(child).toOpaque())
    }

    /// Opens storage for somebody who tries a plugin.
    ///
    /// - Parameter host: lives until the storage is closed.
    package func open(options: [UInt8], host: UnsafePointer<crudd_host>) throws(PluginFailure) -> OpaquePointer {
        try open(options: options, host: host, FailureReport()) {}
    }

    /// The child behind a storage; nil for a plugin that was loaded.
    func child(of storage: OpaquePointer) -> Child? {
        isChild ? ChildTable.child(storage) : nil
    }
}
