import CRUDPluginKit
import Glibc

/// Applies batches of mutations.
///
/// A put writes a file of its own, with all its attributes, and renames it to the record's name, so that the record is
/// there whole or not at all. The costly part is waiting for the disk, and waiting for several files at once costs little
/// more than for one. Hence puts are only staged at first; then all staged files are synced, and after that renamed.
/// The directories are synced when the batch ends, each once. A mutation of a record that is staged itself has to see
/// the outcome, so that what is staged is renamed before.
final class FileSystemWriter {
    /// How many files are staged at a time: each holds a descriptor.
    private static let maximumStaged = 64
    /// How many directories a batch holds open.
    private static let maximumDirectories = 64

    private let root: Root
    private let syncs: Bool
    private let host: Host
    private let foreignFiles: ForeignFiles
    private var staged: [StagedFile] = []
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
        if staged.contains(where: { $0.collection === collection && $0.name == name }) { renameStaged(batch) }
        guard let directory = try directory(of: collection, makes: mutation.kind == .put, batch) else {
            _ = batch.permits(mutation, at: position, current: nil)
            return
        }
        let current = try currentRevision(mutation, directory)
        guard permits(mutation, position, batch, current) else { return }
        if mutation.kind == .put {
            let file = try StagedFile(
                mutation, at: position, name: name, replaces: current != nil, keepsID: encoded.isShortened,
                in: directory, mode: root.fileMode)
            staged.append(file)
            if staged.count == Self.maximumStaged { renameStaged(batch) }
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

    // MARK: The disk

    /// Syncs all staged files, then renames them.
    private func renameStaged(_ batch: borrowing WriteBatch<FileSystemCollection>) {
        var synced: [StagedFile] = []
        for file in staged {
            do throws(StorageFailure) {
                if syncs { try file.sync() }
                synced.append(file)
            } catch {
                refuse(file.position, error, batch)
            }
        }
        staged = []
        for file in synced {
            do throws(StorageFailure) {
                try file.rename()
                took(effect: file.position, in: file.collection)
                batch.applied(file.position, replacing: file.replaces)
            } catch {
                refuse(file.position, error, batch)
            }
        }
    }

    /// Renames what is staged and syncs the directories.
    private func finish(_ batch: borrowing WriteBatch<FileSystemCollection>) {
        renameStaged(batch)
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
