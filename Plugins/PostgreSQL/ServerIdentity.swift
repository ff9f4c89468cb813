import CRUDPluginKit

/// Which server a connection leads to, and whether it can be written to, as the server says in one statement.
struct ServerIdentity: Hashable {
    /// Of the database cluster, copies of it included; 0: the server does not tell.
    let system: Int64
    /// Rises with each promotion; 0: the server does not tell.
    let timeline: Int64
    /// When its postmaster was started, in microseconds since 1970.
    let startTime: Int64
    /// The process that serves the connection.
    let process: Int64
    /// It is a standby, or refuses to write for another reason.
    let isReadOnly: Bool

    /// Whether both are connections to one run of one server.
    func isSameServer(as other: ServerIdentity) -> Bool {
        system == other.system && timeline == other.timeline && startTime == other.startTime
    }

    /// The identity of a history whose changes the server numbers: cursors end where another server continues, which
    /// may not have all that the one before has shown, and where the tables are brought to another cluster.
    func historyIdentity(_ stored: UInt64) -> UInt64 {
        let digest = sha256("\(stored) \(system) \(timeline)".utf8)
        return max(1, (UInt64(digest.prefix(16), radix: 16) ?? stored) & UInt64(Int64.max))
    }

    /// Whether it has transactions by which changes can be numbered: others that speak the protocol tell nothing
    /// of themselves.
    var hasTransactionNumbers: Bool { system != 0 && timeline != 0 }

    /// For the administrator.
    func description(at address: ServerAddress) -> String {
        timeline == 0 ? "\(address)" : "\(address) (timeline \(timeline))"
    }

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

/// A server that the keeper of the lease has chosen.
struct ChosenServer {
    /// Counts the choices: connections of an earlier one are not used any more.
    let generation: UInt64
    let address: ServerAddress
    let identity: ServerIdentity

    /// For the administrator.
    var description: String { identity.description(at: address) }
}
