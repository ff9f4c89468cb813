package import CRUDModel
import CRUDPluginABI
import CRUDPluginHost

extension Backend {
    /// What a client is told of a call or a mutation that the plugin returned `status` for.
    package func error(status: Int) -> CRUDError {
        switch status {
        case CRUDD_UNAVAILABLE, CRUDD_INTERRUPTED: CRUDError(.unavailable, "backend \(name) is not available")
        case CRUDD_OUTCOME_UNKNOWN:
            CRUDError(
                .outcomeUnknown, "backend \(name) cannot tell the outcome of the write; it may have been applied")
        case CRUDD_NO_SPACE: CRUDError(.noSpace, "backend \(name) is full")
        case CRUDD_CORRUPT: CRUDError(.corrupt, "backend \(name) cannot decode what it has stored")
        case CRUDD_UNSUPPORTED: CRUDError(.unsupported, "backend \(name) does not support this")
        default: CRUDError(.internalError, "backend \(name) failed; the daemon's log has the reason")
        }
    }
}

extension PluginFailure {
    /// The status of a call that cannot be made now.
    static var unavailableStatus: Int { CRUDD_UNAVAILABLE }
}
