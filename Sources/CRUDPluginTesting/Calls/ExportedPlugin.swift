package import CRUDPluginABI
package import CRUDPluginHost

/// A plugin as the host sees it: a function table.
// The table is never written, and its functions may be called from any thread.
package final class ExportedPlugin: @unchecked Sendable {
    package let table: UnsafePointer<crudd_plugin>

    package init(_ table: UnsafePointer<crudd_plugin>) {
        self.table = table
    }

    package convenience init(_ plugin: Plugin) {
        self.init(plugin.exported())
    }

    package var name: String { table.pointee.name.map { String(cString: $0) } ?? "" }
    package var version: String { table.pointee.version.map { String(cString: $0) } ?? "" }
    package var capabilities: UInt64 { table.pointee.capabilities }

    /// Has the plugin check options, a JSON object; nil if it finds no fault.
    package func fault(inOptions options: String) -> CallFault? {
        do {
            try CallFault.throwing { failure in
                withBytes(of: options) { table.pointee.check_options($0, failure) }
            }
            return nil
        } catch {
            return error
        }
    }
}
