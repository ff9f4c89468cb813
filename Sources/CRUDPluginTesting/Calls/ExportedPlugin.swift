package import CRUDPluginABI
package import CRUDPluginHost

/// A plugin as the host sees it: a function table.
// The table is never written, and its functions may be called from any thread.
package final class ExportedPlugin: @unchecked Sendable {
    /// A copy in which functions that the plugin's own table is too short for are nil.
    package let table: UnsafePointer<crudd_plugin>

    package init(_ table: UnsafePointer<crudd_plugin>) {
        let copy = UnsafeMutablePointer<crudd_plugin>.allocate(capacity: 1)
        copy.initialize(to: .read(table))
        self.table = UnsafePointer(copy)
    }

    package convenience init(_ plugin: Plugin) {
        self.init(plugin.exported())
    }

    deinit { table.deallocate() }

    package var name: String { table.pointee.name.map { String(cString: $0) } ?? "" }
    package var version: String { table.pointee.version.map { String(cString: $0) } ?? "" }
    package var capabilities: UInt64 { table.pointee.capabilities }

    /// What the plugin says that it can do with options, a JSON object; nil if it does not say.
    package func capabilities(withOptions options: String) -> UInt64? {
        let memory = CallMemory(surplus: 0)
        defer { memory.free() }
        return table.pointee.capabilities_with.map { $0(memory.copy(options)) }
    }

    /// Has the plugin check options, a JSON object; nil if it accepts them.
    package func error(inOptions options: String) -> CallError? {
        let memory = CallMemory(surplus: 0)
        defer { memory.free() }
        do {
            try CallError.throwing { table.pointee.check_options(memory.copy(options), $0) }
            return nil
        } catch {
            return error
        }
    }
}
