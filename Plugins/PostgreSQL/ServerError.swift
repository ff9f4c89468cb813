import CRUDPluginKit

/// An error that the server has reported. Decisions are made by its SQLSTATE alone
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>), as texts are translated and differ between
/// servers.
struct ServerError {
    /// Five characters; empty where libpq itself has failed.
    let state: String
    private let message: String
    private let constraint: String

    init(state: String, message: String, constraint: String = "") {
        self.state = state
        self.message = message
        self.constraint = constraint
    }

    /// The statement was not executed, as one before it in the pipeline has failed.
    static let skipped = ServerError(state: "", message: "a statement before has failed")

    /// The lease has another number: nothing was applied.
    static let fenceRaised = ServerError(state: "40001", message: "the number of the lease has been raised meanwhile")

    /// The row of the lease was locked: nothing was applied.
    static let leaseBusy = ServerError(state: "40001", message: "the lease is being renewed")

    /// Nothing was applied, as another client has changed a record at the same time.
    static let overtaken = ServerError(state: "40001", message: "another client has changed a record meanwhile")

    /// Nothing was applied, as the connection was lost in whose transaction records were locked.
    static let locksLost = ServerError(state: "40001", message: "the locks of records were lost with their connection")

    private var sqlClass: Substring { state.prefix(2) }

    /// Whether the transaction has lost against another one, and may succeed if it is tried again.
    var isConflict: Bool { sqlClass == "40" }

    /// Whether a change of the schema has lost against one of another daemon, or another session's lock, and is to be
    /// made from what is there now.
    var isCollision: Bool { isConflict || ["23505", "42701", "42P06", "42P07", "55P03"].contains(state) }

    /// Whether a lock of another session was not released in time.
    var isLockTimeout: Bool { state == "55P03" }

    /// Whether a statement was cancelled, as it has taken too long, say.
    var isStatementTimeout: Bool { state == "57014" }

    /// Whether one record of a batch may be the cause.
    var concernsRecord: Bool { state == "0A000" || ["22", "23", "44", "54", "P0"].contains(sqlClass) }

    /// The server cannot be written to or is about to go, so that another connection may find one that can; or the
    /// session is not the one that it was, as behind a pooler that hands sessions over.
    var endsConnection: Bool {
        ["25006", "57P01", "57P02", "57P03", "57P05", "26000", "42P05", "08P01"].contains(state)
    }

    var status: StorageFailure.Status {
        switch state {
        case "53100": .noSpace
        case "57014", "25006", "25P03", "26000", "42P05": .unavailable
        case "42P01", "42703": .corrupt  // A table or a column was dropped.
        case "42501": .unavailable
        case "0A000": .unsupported
        default:
            switch sqlClass {
            case "08", "28", "3D", "40", "53", "55", "57", "58", "": .unavailable
            // What the server cannot do, such as several commands in one where it has shards.
            case "22", "23", "42", "44", "54", "P0": .unsupported
            // Citus says the first where a server of it is being lost.
            case "XX": state == "XX000" ? .unavailable : .corrupt
            default: .internal
            }
        }
    }

    /// - Parameter action: what was being done, as in "create a table".
    func failure(_ action: String) -> StorageFailure {
        StorageFailure(status, "cannot \(action): \(description)")
    }

    /// For the administrator. The server's words may quote a record where that is the cause, and are left out then.
    var description: String {
        let what = ["22", "23", "44", "54", "P0"].contains(sqlClass) ? "the server refuses it" : singleLine(message)
        let place = constraint.isEmpty ? "" : ", constraint \(constraint)"
        return state.isEmpty ? what : "\(what) (SQLSTATE \(state)\(place))"
    }
}
