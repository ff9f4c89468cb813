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
        return try whenAvailable {
            try PluginBackend(
                plugin, options: #"{"connection": "\#(connection)", "schema": "\#(schema)"\#(options)}"#)
        }
    }

    /// What `body` returns as soon as the server can be used.
    static func whenAvailable<Value>(_ body: () throws -> Value) throws -> Value {
        let deadline = Deadline()
        while true {
            do {
                return try body()
            } catch let error as CallError where error.status == CRUDD_UNAVAILABLE && !deadline.hasPassed {
                poll(nil, 0, 20)
            }
        }
    }

    /// Writes one record as soon as the server can be used and no other session has locked the record.
    func writeWhenAvailable(_ mutation: PluginMutation) throws -> PluginOutcome {
        try Self.whenAvailable {
            let outcome = try write([mutation])[0]
            if outcome == .refused(CRUDD_UNAVAILABLE) {
                throw CallError(status: CRUDD_UNAVAILABLE, message: "the record is locked")
            }
            return outcome
        }
    }
}
