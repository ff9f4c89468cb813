package import CRUDPluginABI
package import Logging

/// Storage that a plugin has opened.
package struct OpenedPlugin: @unchecked Sendable {
    // @unchecked: an address; the host follows the contract's rules on threads.

    /// The plugin's `crudd_backend`, to be closed by the plugin's table.
    package let storage: OpaquePointer
    /// What the plugin can do with these options.
    package let capabilities: Plugin.Capabilities
    /// No record that was ever stored has a higher sequence number.
    package let lastSequence: UInt64
    /// Tells the storage from others; nil where it promises nothing beyond its process, or does not say.
    package let identity: StorageIdentity?
    /// How many readers beside those of event loops serve the plugin best, at least 1.
    package let readers: Int
    /// Where the commits of everybody are counted; nil where the plugin does not tell.
    package let commitCounter: CommitCounter.Place?
    /// The child that the storage is in; nil for a plugin that was loaded.
    package let child: Child?
}

extension Plugin {
    /// A plugin for one backend, which runs it in a child process. A child is started to say what it can do, and to
    /// check the backend's options, without touching storage.
    ///
    /// - Throws: ``PluginFailure`` that is final: the file or its version; `unavailable` where the system fails when it
    ///   is asked for the file.
    package static func inChild(
        _ command: ChildCommand, options: [UInt8], logger: Logger
    ) throws(PluginFailure) -> (plugin: Plugin, check: OptionCheck) {
        // A file that must not be used is an error whatever a child would say.
        let file: PluginFile
        do throws(PluginLoadingError) {
            file = try command.file()
        } catch {
            throw PluginFailure(error)
        }
        let host = PluginHostCallbacks(backend: command.backend, logger: logger)
        do throws(PluginFailure) {
            let child = try Child(command, host: HostReference(host.pointer)) {}
            defer { child.close() }
            let check = OptionCheck(of: options) { options throws(PluginFailure) in
                try child.capabilities(withOptions: options)
            }
            if let doubt = check.doubt { throw doubt }
            let greeting = child.greeting
            return (
                Plugin(
                    file, version: greeting.version, capabilities: greeting.capabilities,
                    storageOption: greeting.storageOption, backupAdvice: greeting.backupAdvice,
                    table: ChildTable.table, command: command), check
            )
        } catch {
            if error.isFinal { throw error }
            return (
                Plugin(
                    file, version: "", capabilities: [], storageOption: nil, backupAdvice: nil,
                    table: ChildTable.table, command: command),
                OptionCheck(doubt: error)
            )
        }
    }

    /// Opens storage.
    ///
    /// - Parameters:
    ///   - options: a JSON object.
    ///   - host: lives until the storage is closed.
    ///   - lost: called, on any thread, when a child has ended by itself.
    package func open(
        options: [UInt8], host: UnsafePointer<crudd_host>, lost: @escaping @Sendable () -> Void = {}
    ) throws(PluginFailure) -> OpenedPlugin {
        guard let command else { return try openHere(options: options, host: host) }
        return try Self.open(command, options: options, host: host, lost: lost)
    }

    /// Opens storage in this process.
    private func openHere(options: [UInt8], host: UnsafePointer<crudd_host>) throws(PluginFailure) -> OpenedPlugin {
        let failure = FailureReport()
        let call = CallContext()
        var storage: OpaquePointer?
        var opened = crudd_opened.sized()
        opened.capabilities = capabilities.rawValue
        try failure.check(
            options.withUnsafeBufferPointer {
                table.pointee.open(crudd_bytes($0), host, call.begin(), &storage, &opened, failure.pointer)
            })
        guard let storage else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "the plugin opened nothing and reported no failure")
        }
        var capabilities = capabilities.intersection(Capabilities(rawValue: opened.capabilities))
        if !capabilities.contains(.concurrentReads) { capabilities.remove(.fastReads) }
        // A capability without its function is none.
        if capabilities.contains(.shared), table.pointee.read_history == nil {
            capabilities.subtract([.sequences, .takesHistory])
        }
        return OpenedPlugin(
            storage: storage, capabilities: capabilities, lastSequence: opened.last_sequence,
            identity: StorageIdentity(opened.identity),
            readers: capabilities.contains(.concurrentReads) ? max(1, Int(opened.readers)) : 1,
            commitCounter: opened.commitCounter, child: nil)
    }

    /// Opens storage in a child of its own.
    private static func open(
        _ command: ChildCommand, options: [UInt8], host: UnsafePointer<crudd_host>,
        lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) -> OpenedPlugin {
        let child = try Child(command, host: HostReference(host), lost: lost)
        do throws(PluginFailure) {
            let opening = try child.open(options: options, expected: crudd_host.read(host).expected_storage)
            return OpenedPlugin(
                storage: ChildTable.retained(child), capabilities: child.capabilities,
                lastSequence: opening.lastSequence, identity: opening.identity, readers: 1,
                commitCounter: opening.commitCounter, child: child)
        } catch {
            child.close()
            throw error
        }
    }
}

extension crudd_opened {
    fileprivate var commitCounter: CommitCounter.Place? {
        guard commit_counter_path.size > 0 else { return nil }
        return CommitCounter.Place(
            path: String(decoding: commit_counter_path.buffer, as: UTF8.self), offset: commit_counter_offset)
    }
}
