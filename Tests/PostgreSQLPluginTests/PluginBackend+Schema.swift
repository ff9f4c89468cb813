import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport

extension PluginBackend {
    /// Opens a schema as a daemon does: a server that does not reply in time, be it on a busy machine, is asked again.
    ///
    /// - Parameters:
    ///   - connection: what libpq connects by.
    ///   - options: further ones, each behind a comma.
    static func open(_ connection: String, schema: String, _ options: String = "") throws -> PluginBackend {
        let plugin = try ExportedPlugin("postgresql")
        let deadline = Deadline()
        while true {
            do throws(CallError) {
                return try PluginBackend(
                    plugin, options: #"{"connection": "\#(connection)", "schema": "\#(schema)"\#(options)}"#)
            } catch {
                guard error.status == CRUDD_UNAVAILABLE, !deadline.hasPassed else { throw error }
                poll(nil, 0, 100)
            }
        }
    }
}
