package import CRUDModel
import CRUDThreads
import Synchronization

extension Backend {
    /// A backup that is being made, as an administrator sees it.
    package struct BackupStatus: Sendable {
        package var path: String
        package var bytes = 0
        /// 0: it is not known.
        package var totalBytes = 0

        package init(path: String) {
            self.path = path
        }
    }

    /// Begins a copy of the storage as of a moment of this call, and waits for that.
    ///
    /// - Parameters:
    ///   - path: of an empty file, into which the copy is written.
    ///   - timeout: how long that may take.
    package func beginBackup(to path: String, within timeout: Duration) throws(CRUDError) -> RunningBackup {
        let begun = Mutex<RunningBackup?>(nil)
        let isWanted = Mutex(true)
        do throws(CRUDError) {
            try perform(within: timeout) { (storage) throws(CRUDError) in
                let backup = try storage.beginBackup(to: path)
                if isWanted.withLock(\.self) { begun.withLock { $0 = backup } } else { backup.end() }
            }
        } catch {
            isWanted.withLock { $0 = false }
            begun.withLock { $0.take() }?.end()
            throw error
        }
        guard let backup = begun.withLock({ $0.take() }) else { throw failures.unavailable }
        return backup
    }

    /// Has a backup copy on for some milliseconds, and waits for that.
    ///
    /// - Parameters:
    ///   - backup: of this backend.
    ///   - timeout: how long that may take where the plugin takes one call at a time.
    package func advance(
        _ backup: RunningBackup, within timeout: Duration
    ) throws(CRUDError) -> RunningBackup.Progress {
        guard backup.stepsOnWriter else { return try backup.step() }
        let made = Mutex<RunningBackup.Progress?>(nil)
        try perform(within: timeout) { (_) throws(CRUDError) in
            let progress = try backup.step()
            made.withLock { $0 = progress }
        }
        guard let progress = made.withLock({ $0 }) else { throw failures.unavailable }
        return progress
    }
}
