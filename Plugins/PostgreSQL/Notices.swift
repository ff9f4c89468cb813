import CPostgreSQL

/// What a server has said on a connection without having been asked.
final class Notices {
    /// What the server itself has warned of first since this was reset, and not a function, such as that of a trigger,
    /// which the warning would name as its context. While the server commits it does so where the commit has not
    /// reached the standbys (<https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION>), and
    /// one that has shards where another server has not done its part.
    var warning: ServerError?
    /// Why the server ends the connection, if it has said so.
    private(set) var ending: ServerError?

    /// Receives the notices of a connection. This object has to exist until that is closed.
    func receive(from handle: OpaquePointer) {
        PQsetNoticeReceiver(
            handle,
            { notices, result in
                guard let notices, let result else { return }
                // The address given below.
                Unmanaged<Notices>.fromOpaque(notices).takeUnretainedValue().take(result)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func take(_ result: OpaquePointer) {
        func field(_ code: some BinaryInteger) -> String? {
            PQresultErrorField(result, Int32(code)).map { String(cString: $0) }
        }
        func said() -> ServerError {
            ServerError(state: field(cpostgresql_sqlstate) ?? "", message: field(cpostgresql_message) ?? "")
        }
        switch field(cpostgresql_severity) {
        case "WARNING": if field(cpostgresql_context) == nil { warning = warning ?? said() }
        case "FATAL", "PANIC": ending = said()
        default: break
        }
    }
}
