import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
package import Logging
import Synchronization

/// Turns failed calls of one backend's plugin into lines of the log, what an administrator sees, and errors for
/// clients.
package final class FailureReporter: Sendable {
    let backend: String
    let logger: Logger

    private struct State {
        var lastError: String?
        var log = FailureLog()
        /// Hashes of the corrupt records that have been logged.
        var corrupt: Set<Int> = []
    }

    private let state = Mutex(State())

    /// How many corrupt records are logged at the most: what is remembered of them takes memory.
    private static let maximumCorrupt = 100_000

    package init(backend: String, logger: Logger) {
        self.backend = backend
        self.logger = logger.naming(backend: backend)
    }

    /// The last failure of the plugin, or how its child was last lost.
    var lastError: String? {
        get { state.withLock { $0.lastError } }
        set { state.withLock { $0.lastError = newValue } }
    }

    /// Notes a failed call for the administrator.
    ///
    /// - Returns: what a client is told.
    func report(_ failure: PluginFailure, during call: String) -> CRUDError {
        let line = state.withLock { state in
            state.lastError = failure.message
            return state.log.line(for: "backend \(backend): \(call): \(failure.message)")
        }
        if let line { logger.error("\(line)") }
        return error(status: failure.status)
    }

    /// Logs records that cannot be decoded, each once.
    func note(corrupt ids: some Sequence<[UInt8]>, in collection: BackendCollection) {
        for id in ids {
            var hasher = Hasher()
            hasher.combine(collection.name)
            hasher.combine(id)
            let hash = hasher.finalize()
            let isNew = state.withLock { $0.corrupt.count < Self.maximumCorrupt && $0.corrupt.insert(hash).inserted }
            guard isNew else { continue }
            let (collection, id) = (quoted(collection.name), quoted(id))
            logger.error("backend \(backend): collection \(collection): record \(id) is corrupt, it cannot be decoded")
        }
    }

    /// What a client is told of a call or a mutation that the plugin returned `status` for.
    func error(status: Int) -> CRUDError {
        switch status {
        case CRUDD_UNAVAILABLE, CRUDD_INTERRUPTED: unavailable
        case CRUDD_OUTCOME_UNKNOWN:
            CRUDError(
                .outcomeUnknown, "backend \(backend) cannot tell the outcome of the write; it may have been applied")
        case CRUDD_NO_SPACE: CRUDError(.noSpace, "backend \(backend) is full")
        case CRUDD_CORRUPT: CRUDError(.corrupt, "backend \(backend) cannot decode what it has stored")
        case CRUDD_UNSUPPORTED: CRUDError(.unsupported, "backend \(backend) does not support this")
        default: CRUDError(.internalError, "backend \(backend) failed; the daemon's log has the reason")
        }
    }

    /// What a client is told where the plugin cannot be asked now.
    var unavailable: CRUDError { CRUDError(.unavailable, "backend \(backend) is not available") }
}

extension Logger {
    /// This logger, with a backend's name in the structured fields of its lines.
    fileprivate func naming(backend: String) -> Logger {
        var logger = self
        logger[metadataKey: "backend"] = "\(backend)"
        return logger
    }
}
