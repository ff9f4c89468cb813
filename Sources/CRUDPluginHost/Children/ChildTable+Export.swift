package import CRUDPluginABI
import Glibc
import Synchronization

/// The whole contract over children of one plugin, for a caller that knows nothing but a function table.
extension Plugin {
    /// The function table; of a plugin that runs in children one with `check_options` and `open`, which start a child
    /// each.
    ///
    /// The contract gives these two no context. So there is one such plugin in a process, the last that was asked for.
    package func exported() -> UnsafePointer<crudd_plugin> {
        guard isChild else { return table }
        ChildTable.exported.withLock { $0 = self }
        var copy = table.pointee
        // Never freed, as a function table is not.
        copy.name = UnsafePointer(strdup(name))
        copy.version = UnsafePointer(strdup(version))
        copy.capabilities = capabilities.rawValue
        copy.check_options = { options, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                guard let command = ChildTable.exported.withLock({ $0 })?.command else { return }
                // Nothing is open while options are checked, so that there is nothing to say.
                let silentHost = HostReference(crudd_host.sized())
                let child = try Child(command, host: silentHost) {}
                defer { child.close() }
                _ = try child.capabilities(withOptions: Array(options.buffer))
            }
        }
        copy.open = { options, host, _, backend, opened, failure in
            ChildTable.status(failure) { () throws(PluginFailure) in
                // The caller gives all of them, and the plugin was set above.
                let plugin = ChildTable.exported.withLock { $0 }!
                let storage = try plugin.open(options: Array(options.buffer), host: host!)
                opened!.pointee.set(storage)
                backend!.pointee = storage.storage
            }
        }
        return PluginTable.keep(copy)
    }
}

extension ChildTable {
    fileprivate static let exported = Mutex<Plugin?>(nil)
}

extension crudd_opened {
    fileprivate mutating func set(_ storage: OpenedPlugin) {
        readers = UInt32(clamping: storage.readers)
        capabilities = storage.capabilities.rawValue
        last_sequence = storage.lastSequence
    }
}
