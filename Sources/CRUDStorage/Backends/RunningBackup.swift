import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import Logging
import Synchronization

/// A copy of a backend's storage that the plugin writes, step by step, while the storage is used.
///
/// It ends with the storage at the latest: the writer's thread ends it before it closes that, whichever thread makes
/// the steps.
package final class RunningBackup: @unchecked Sendable {
    // @unchecked: what follows `gate` is used by the thread that holds it. It does not stand in the mutex, as it is not
    // to be copied.
    private let gate = Mutex(())
    private var handle: PluginHandle?
    private let failure = FailureReport()
    private let context = CallContext()

    private let table: UnsafePointer<crudd_plugin>
    private let failures: FailureReporter
    /// Whether the steps are calls of the writer's thread, as the plugin takes one call at a time.
    let stepsOnWriter: Bool

    /// How far a backup has come.
    package struct Progress: Sendable {
        package var isComplete: Bool
        package var bytes: Int
        /// 0: it is not known.
        package var totalBytes: Int
    }

    /// - Parameter handle: what `begin_backup` has returned.
    init(_ handle: PluginHandle, of storage: OpenStorage) {
        self.handle = handle
        table = storage.table
        failures = storage.failures
        stepsOnWriter = storage.opened.child == nil && !storage.opened.capabilities.contains(.concurrentReads)
    }

    deinit { end() }

    /// Whether there are no more steps.
    var hasEnded: Bool { gate.withLock { _ in handle == nil } }

    /// Has the plugin copy on for some milliseconds.
    func step() throws(CRUDError) -> Progress {
        try gate.withLock { _ throws(CRUDError) in
            guard let handle, let step = table.pointee.step_backup else { throw failures.unavailable }
            var progress = crudd_backup_progress.sized()
            let status = step(handle.pointer, context.begin(), &progress, failure.pointer)
            guard Int(status) == CRUDD_OK else {
                throw failures.backupError(failure.take(status: status), during: "step_backup")
            }
            return Progress(
                isComplete: progress.is_complete != 0, bytes: Int(clamping: progress.bytes),
                totalBytes: Int(clamping: progress.total_bytes))
        }
    }

    /// Ends it, complete or not.
    package func end() {
        gate.withLock { _ in
            if let handle = handle.take() { table.pointee.end_backup?(handle.pointer) }
        }
    }
}

extension OpenStorage {
    /// Has the plugin begin a copy of the storage.
    ///
    /// - Parameter path: of an empty file.
    /// - Throws: `unsupported` where the plugin makes none; `unavailable` while there is another.
    func beginBackup(to path: String) throws(CRUDError) -> RunningBackup {
        if let backup, !backup.hasEnded {
            throw CRUDError(.unavailable, "a backup of backend \(failures.backend) is in progress")
        }
        guard let begin = table.pointee.begin_backup else { throw unsupportedBackup }
        var handle: OpaquePointer?
        let status = Array(path.utf8).withUnsafeBufferPointer {
            begin(opened.storage, context.begin(), crudd_bytes($0), &handle, failure.pointer)
        }
        if Int(status) == CRUDD_UNSUPPORTED {
            _ = failure.take(status: status)
            throw unsupportedBackup
        }
        guard Int(status) == CRUDD_OK, let handle else {
            throw failures.backupError(failure.take(status: status), during: "begin_backup")
        }
        let begun = RunningBackup(PluginHandle(pointer: handle), of: self)
        backup = begun
        return begun
    }

    private var unsupportedBackup: CRUDError {
        let advice = environment.plugin.backupAdvice ?? "use crudctl dump"
        return CRUDError(.unsupported, "backend \(failures.backend) makes no backups: \(advice)")
    }
}

extension FailureReporter {
    /// Logs why a backup has failed. Neither the backend nor its disk need be at fault.
    fileprivate func backupError(_ failure: PluginFailure, during call: String) -> CRUDError {
        logger.error("backend \(backend): \(call): \(failure.message)")
        switch failure.status {
        case CRUDD_NO_SPACE: return CRUDError(.noSpace, "there is no room for the backup of backend \(backend)")
        case CRUDD_UNAVAILABLE, CRUDD_INTERRUPTED:
            return CRUDError(
                .unavailable, "the backup of backend \(backend) has failed; the daemon's log has the reason")
        default: return error(status: failure.status)
        }
    }
}
