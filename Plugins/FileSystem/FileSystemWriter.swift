import CRUDPluginKit
import Glibc

/// Applies batches of mutations.
///
/// A put writes a file of its own, with all its attributes, has the disk confirm it, and renames it to the record's name,
/// so that the record is there whole or not at all. The directories are synced when the batch ends, each once. (Writing
/// all files of a batch before the first is synced is no quicker: on ext4 each sync commits the journal all the same.)
final class FileSystemWriter {
    /// How many directories a batch holds open.
    private static let maximumDirectories = 64

    private let root: Root
    private let syncs: Bool
    private let host: Host
    private let foreignFiles: ForeignFiles
    /// The collections that the batch has touched.
    private var targets: [ObjectIdentifier: Target] = [:]
    /// The failure that was logged last, so that a full disk does not fill the log as well.
    private var loggedFailure: String?

    /// A directory that is being written to.
    private struct Target {
        let directory: Directory
        /// The mutations that have taken effect and not been synced yet.
        var changes: [Int] = []
    }

    init(root: Root, syncs: Bool, host: Host, foreignFiles: ForeignFiles) {
        self.root = root
        self.syncs = syncs
        self.host = host
        self.foreignFiles = foreignFiles
    }

    func write(_ batch: borrowing WriteBatch<FileSystemCollection>) {
        for position in 0..<batch.count {
            do throws(StorageFailure) {
                try settle(batch[position], position, batch)
            } catch {
                refuse(position, error, batch)
            }
        }
        finish(batch)
    }

    // MARK: Mutations

    private func settle(
        _ mutation: Mutation<FileSystemCollection>, _ position: Int, _ batch: borrowing WriteBatch<FileSystemCollection>
    ) throws(StorageFailure) {
        let collection = mutation.collection
        let encoded = EncodedName(mutation.id)
        let name = FileName.record(encoded, collection.format)
        guard let directory = try directory(of: collection, makes: mutation.kind == .put, batch) else {
            _ = batch.permits(mutation, at: position, current: nil)
            return
        }
        let current = try currentRevision(mutation, directory)
        guard permits(mutation, position, batch, current) else { return }
        if mutation.kind == .put {
            let file = try NewFile(
                mutation, name: name, keepsID: encoded.isShortened, in: directory, mode: root.fileMode)
            if syncs { try file.sync() }
            try file.rename()
            took(effect: position, in: collection)
            batch.applied(position, replacing: current != nil)
        } else if try directory.removeFile(name) {
            took(effect: position, in: collection)
            batch.applied(position, replacing: false)
        } else {
            batch.refused(position, .notFound)
        }
    }

    /// The revision that is there, or nothing of it if the mutation does not ask; nil if there is no record.
    private func currentRevision(
        _ mutation: Mutation<FileSystemCollection>, _ directory: Directory
    ) throws(StorageFailure) -> [UInt8]? {
        guard let file = try RecordFile.open(mutation.id, of: mutation.collection, in: directory, foreignFiles) else {
            return nil
        }
        return try mutation.precondition == .revision ? file.revision() : []
    }

    private func permits(
        _ mutation: Mutation<FileSystemCollection>, _ position: Int,
        _ batch: borrowing WriteBatch<FileSystemCollection>, _ current: [UInt8]?
    ) -> Bool {
        guard let current else { return batch.permits(mutation, at: position, current: nil) }
        // The bytes are read before the closure returns.
        return unsafe current.withUnsafeBytes { batch.permits(mutation, at: position, current: $0) }
    }

    private func took(effect position: Int, in collection: FileSystemCollection) {
        targets[ObjectIdentifier(collection)]?.changes.append(position)
    }

    /// The directory of a collection; nil if it is not there, since somebody has removed it, and is not to be made.
    private func directory(
        of collection: FileSystemCollection, makes: Bool, _ batch: borrowing WriteBatch<FileSystemCollection>
    ) throws(StorageFailure) -> Directory? {
        if let target = targets[ObjectIdentifier(collection)] { return target.directory }
        if targets.count == Self.maximumDirectories { finish(batch) }
        guard let directory = try makes ? root.makeDirectory(of: collection) : root.directory(of: collection) else {
            return nil
        }
        targets[ObjectIdentifier(collection)] = Target(directory: directory)
        return directory
    }

    /// Syncs the directories.
    private func finish(_ batch: borrowing WriteBatch<FileSystemCollection>) {
        for target in targets.values where !target.changes.isEmpty {
            do throws(StorageFailure) {
                if syncs { try target.directory.sync() }
                loggedFailure = nil
            } catch {
                // The names are changed, and may or may not be so after a crash.
                let failure = StorageFailure(.outcomeUnknown, error.message)
                for position in target.changes { refuse(position, failure, batch) }
            }
        }
        targets = [:]
    }

    private func refuse(
        _ position: Int, _ failure: StorageFailure, _ batch: borrowing WriteBatch<FileSystemCollection>
    ) {
        batch.refused(position, failure.status)
        if loggedFailure == failure.message { return }
        loggedFailure = failure.message
        host.log(.error, "cannot write: \(failure.message)")
    }
}
