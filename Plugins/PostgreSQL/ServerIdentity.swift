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
