package import CRUDPluginABI
package import CRUDPluginHost
import Logging

/// A plugin as the host has it: a function table, and how it opens storage.
// The table is never written, and its functions may be called from any thread.
package final class ExportedPlugin: @unchecked Sendable {
    package let table: UnsafePointer<crudd_plugin>
    package let name: String
    package let version: String
    package let capabilities: UInt64
    /// How the plugin is started in child processes; nil for one that is in this process.
    private let child: (plugin: Plugin, command: ChildCommand)?

    package init(_ table: UnsafePointer<crudd_plugin>) {
        self.table = table
        name = table.pointee.name.map { String(cString: $0) } ?? ""
        version = table.pointee.version.map { String(cString: $0) } ?? ""
        capabilities = table.pointee.capabilities
        child = nil
    }

    /// A plugin in child processes: each backend has one of its own.
    ///
    /// - Parameter options: a JSON object.
    /// - Throws: ``CallFault`` if no child can be asked what it can do, or refuses the options.
    package init(_ command: ChildCommand, options: String) throws(CallFault) {
        let plugin = try Self.start(command, options: options)
        table = plugin.table
        name = plugin.name
        version = plugin.version
        capabilities = plugin.capabilities.rawValue
        child = (plugin, command)
    }

    private static func start(_ command: ChildCommand, options: String) throws(CallFault) -> Plugin {
        do {
            let logger = Logger(label: command.name) { _ in SwiftLogNoOpLogHandler() }
            let (plugin, doubt) = try Plugin.inChild(command, options: Array(options.utf8), logger: logger)
            if let doubt { throw CallFault.breach(doubt) }
            return plugin
        } catch let failure as PluginFailure {
            throw CallFault(failure)
        } catch {
            throw .breach("\(error)")
        }
    }

    /// Whether it runs in child processes.
    package var isChild: Bool { child != nil }

    /// Has the plugin check options, a JSON object; nil if it finds no fault.
    package func fault(inOptions options: String) -> CallFault? {
        do throws(CallFault) {
            if let child {
                _ = try Self.start(child.command, options: options)
            } else {
                try CallFault.throwing { failure in
                    withBytes(of: options) { table.pointee.check_options($0, failure) }
                }
            }
            return nil
        } catch {
            return error
        }
    }

    func open(options: String, host: UnsafePointer<crudd_host>) throws(CallFault) -> OpaquePointer {
        if let child {
            do throws(PluginFailure) {
                return try child.plugin.open(options: Array(options.utf8), host: host)
            } catch {
                throw CallFault(error)
            }
        }
        var handle: OpaquePointer?
        try CallFault.throwing { failure in
            withBytes(of: options) { table.pointee.open($0, host, &handle, failure) }
        }
        guard let handle else { throw .breach("open answered CRUDD_OK and no backend") }
        return handle
    }
}

extension CallFault {
    fileprivate init(_ failure: PluginFailure) {
        self.init(status: failure.status, message: failure.message, pointer: failure.pointer)
    }
}
