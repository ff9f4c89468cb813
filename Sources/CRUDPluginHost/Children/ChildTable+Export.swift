package import CRUDPluginABI
import Synchronization

/// The whole contract over children of one plugin, for who has nothing but a function table to go by.
extension Plugin {
    /// The function table; of a plugin that runs in children one with `check_options` and `open`, which start a child each.
    ///
    /// The contract gives these two no context. So there is one such plugin in a process, the last that was asked for.
    package func exported() -> UnsafePointer<crudd_plugin> {
        guard isChild else { return table }
        ChildTable.exported.withLock { $0 = self }
        let copy = UnsafeMutablePointer<crudd_plugin>.allocate(capacity: 1)
        copy.initialize(to: table.pointee)
        copy.pointee.name = Self.immortalCopy(name)
        copy.pointee.version = Self.immortalCopy(version)
        copy.pointee.capabilities = capabilities.rawValue
        copy.pointee.check_options = { options, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                guard let command = ChildTable.exported.withLock({ $0 })?.command else { return }
                let child = try Child(command, host: HostReference(pointer: ChildTable.silentHost)) {}
                defer { child.close() }
                try child.check(options: Array(options.buffer))
            }
        }
        copy.pointee.open = { options, host, backend, failure in
            ChildTable.answer(failure) { () throws(PluginFailure) in
                // The host gives all three, and the plugin was set above.
                let plugin = ChildTable.exported.withLock { $0 }!
                backend!.pointee = try plugin.open(options: Array(options.buffer), host: host!, FailureReport()) {}
            }
        }
        return UnsafePointer(copy)
    }

    /// A terminated copy that is never freed, as a function table is not.
    private static func immortalCopy(_ text: String) -> UnsafePointer<CChar> {
        let characters = Array(text.utf8CString)
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: characters.count)
        copy.initialize(from: characters, count: characters.count)
        return UnsafePointer(copy)
    }
}

extension ChildTable {
    fileprivate static let exported = Mutex<Plugin?>(nil)

    /// A host that says nothing: nothing is open while options are checked.
    // The struct is never written again.
    fileprivate static nonisolated(unsafe) let silentHost: UnsafePointer<crudd_host> = {
        let host = UnsafeMutablePointer<crudd_host>.allocate(capacity: 1)
        host.initialize(to: crudd_host())
        host.pointee.struct_size = UInt32(MemoryLayout<crudd_host>.size)
        host.pointee.log = { _, _, _ in }
        return UnsafePointer(host)
    }()
}
