import CRUDPluginABI

/// The statuses of the plugin contract as the child protocol names them.
package enum StatusName {
    private static let all: [(name: StaticString, status: Int)] = [
        ("ok", CRUDD_OK), ("not_found", CRUDD_NOT_FOUND), ("exists", CRUDD_EXISTS), ("mismatch", CRUDD_MISMATCH),
        ("unavailable", CRUDD_UNAVAILABLE), ("outcome_unknown", CRUDD_OUTCOME_UNKNOWN), ("no_space", CRUDD_NO_SPACE),
        ("corrupt", CRUDD_CORRUPT), ("unsupported", CRUDD_UNSUPPORTED), ("invalid_options", CRUDD_INVALID_OPTIONS),
        ("internal", CRUDD_INTERNAL),
    ]

    /// The name of a status; `internal` for what the contract does not know.
    package static func name(of status: Int) -> StaticString {
        all.first { $0.status == status }?.name ?? "internal"
    }

    /// The status with a name.
    package static func status(named name: UnsafeRawBufferPointer) -> Int? {
        all.first { candidate in
            // A StaticString's bytes outlive everything.
            name.elementsEqual(
                unsafe UnsafeBufferPointer(start: candidate.name.utf8Start, count: candidate.name.utf8CodeUnitCount))
        }?.status
    }
}
