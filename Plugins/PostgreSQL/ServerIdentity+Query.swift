import CRUDPluginKit

/// Asking the server what it is.
extension ServerIdentity {
    /// The timeline is that of the log that is being written: the control file has it only after a checkpoint.
    private static let query = """
        SELECT system_identifier, CASE WHEN pg_is_in_recovery() THEN 0
            ELSE CAST(CAST('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS bit(32)) AS bigint) END,
            CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint),
            CAST(pg_backend_pid() AS bigint),
            pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'
        FROM pg_control_system()
        """

    /// The process that serves a connection now.
    static func process(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Int64 {
        try connection.query("SELECT CAST(pg_backend_pid() AS bigint)", Parameters(), [], wait)
            .check("ask the server what it is").integer(0, 0)
    }

    static func ask(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> ServerIdentity {
        let result = try connection.query(query, Parameters(), [], wait)
        if result.error == nil, result.rowCount == 1 {
            return ServerIdentity(
                system: result.integer(0, 0), timeline: result.integer(0, 1), startTime: result.integer(0, 2),
                process: result.integer(0, 3), isReadOnly: result.integer(0, 4) == 1)
        }
        if let error = result.error, error.endsConnection { throw error.failure("ask the server what it is") }
        // Other servers that speak the protocol know none of these functions.
        let readOnly = try connection.query("SHOW transaction_read_only", Parameters(), [], wait)
            .check("ask the server what it is")
        return ServerIdentity(
            system: 0, timeline: 0, startTime: 0, process: 0, isReadOnly: readOnly.text(0, 0) == "on")
    }
}
