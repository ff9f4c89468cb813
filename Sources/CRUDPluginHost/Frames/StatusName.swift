import CRUDPluginABI

/// The statuses of the plugin contract as the child protocol names them.
enum StatusName {
    private static let all: [(name: StaticString, status: Int)] = [
        ("ok", CRUDD_OK), ("not_found", CRUDD_NOT_FOUND), ("exists", CRUDD_EXISTS), ("mismatch", CRUDD_MISMATCH),
        ("unavailable", CRUDD_UNAVAILABLE), ("outcome_unknown", CRUDD_OUTCOME_UNKNOWN), ("no_space", CRUDD_NO_SPACE),
        ("corrupt", CRUDD_CORRUPT), ("unsupported", CRUDD_UNSUPPORTED), ("invalid_options", CRUDD_INVALID_OPTIONS),
        ("internal", CRUDD_INTERNAL), ("interrupted", CRUDD_INTERRUPTED),
    ]

    /// The name of a status; `internal` for what the contract does not know.
    static func name(of status: Int) -> StaticString {
        all.first { $0.status == status }?.name ?? "internal"
    }

    /// The first status whose name fits; nil where there is none.
    static func status(where isNamed: (StaticString) -> Bool) -> Int? {
        all.first { isNamed($0.name) }?.status
    }
}
