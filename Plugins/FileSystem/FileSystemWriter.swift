import CRUDPluginKit
import Glibc

/// Applies batches of mutations.
///
/// A put writes a file of its own, with all its attributes, has the disk confirm it, and renames it to the record's
/// name, so that the record is there whole or not at all. The directories are synced when the batch ends, each once.
/// (Writing all files of a batch before the first is synced is not faster: on ext4 each sync commits the journal all
/// the same.)
///
/// A second sync may succeed though the kernel has given up what the first could not write. A file whose sync has
/// failed is therefore removed and written again. A directory cannot be written again: once its sync has failed, the
/// outcome of the batch is unknown, and everything is refused until the backend is opened again.
final class FileSystemWriter {
    /// How many directories a batch holds open.
    private static let maximumDirectories = 64

    let root: Root
    let sequences: ReservedSequences
    let syncs: Bool
    let host: Host
    let foreignFiles: ForeignFiles
    /// By collection: each lives as long as the backend.
    private var queues: [ObjectIdentifier: ExpiryQueue] = [:]
    /// The collections that the batch has touched.
    private var targets: [ObjectIdentifier: Target] = [:]
    /// The failure that was logged last, so that a full disk does not fill the log as well.
    private var loggedFailure: String?

    /// A directory that is being written to.
    private struct Target {
        let directory: Directory
        /// Where its files are made.
        let workplace: Directory
        /// The mutations that have taken effect and not been synced yet.
        var changes: [Int] = []
    }

    init(root: Root, sequences: ReservedSequences, syncs: Bool, host: Host, foreignFiles: ForeignFiles) {
        self.root = root
        self.sequences = sequences
        self.syncs = syncs
        self.host = host
        self.foreignFiles = foreignFiles
    }

    func write(_ batch: borrowing WriteBatch<FileSystemCollection>) {
        var heartbeat = Heartbeat(batch.call, host, stepsPerReading: 1)
        for position in 0..<batch.count {
            heartbeat.advance()
            do throws(StorageFailure) {
                try root.checkSyncs()
                try apply(batch[position], position, batch)
            } catch {
                refuse(position, error, batch)
            }
        }
        finish(batch)
    }

    // MARK: Expiry

    func queue(of collection: FileSystemCollection) -> ExpiryQueue {
        if let queue = queues[ObjectIdentifier(collection)] { return queue }
        let queue = ExpiryQueue()
        queues[ObjectIdentifier(collection)] = queue
        return queue
    }

    /// The collection is dropped.
    func forget(_ collection: FileSystemCollection) {
        queues[ObjectIdentifier(collection)] = nil
    }

    // MARK: Mutations

    private func apply(
        _ mutation: Mutation<FileSystemCollection>, _ position: Int, _ batch: borrowing WriteBatch<FileSystemCollection>
    ) throws(StorageFailure) {
        let collection = mutation.collection
        guard let directory = try directory(of: collection, makes: mutation.kind == .put, batch) else {
            _ = batch.permits(mutation, at: position, current: nil)
            return
        }
        let current = try current(mutation, directory)
        guard permits(mutation, position, batch, current) else { return }
        try sequences.reserve(mutation.sequence)
        if mutation.kind == .put {
            try put(mutation, directory)
            if mutation.expiresAt != 0 {
                queue(of: collection).push(Array(mutation.id), expiresAt: mutation.expiresAt)
            }
            took(effect: position, in: collection)
            batch.applied(position, replacing: current.map { !batch.call.hasExpired($0.expiresAt) } ?? false)
        } else if try directory.removeFile(FileName.record(EncodedName(mutation.id.bytes), collection.format)) {
            took(effect: position, in: collection)
            batch.applied(position, replacing: false)
        } else {
            batch.refused(position, .notFound)
        }
    }

    private func put(
        _ mutation: Mutation<FileSystemCollection>, _ directory: Directory
    ) throws(StorageFailure) {
        if mutation.expiresAt != 0 { try directory.markExpiringFiles(syncs: syncs) }
        let encoded = EncodedName(mutation.id.bytes)
        let workplace = targets[ObjectIdentifier(mutation.collection)]?.workplace ?? directory
        let file = try NewFile(in: workplace, mode: root.fileMode)
        try file.write(mutation.item.bytes)
        try file.setAttributes(of: mutation, keepsID: encoded.isShortened)
        if syncs { try file.sync() }
        try file.rename(to: FileName.record(encoded, mutation.collection.format), in: directory)
    }

    /// What is there, its revision only if the mutation asks for it; nil if there is no record.
    private func current(
        _ mutation: Mutation<FileSystemCollection>, _ directory: Directory
    ) throws(StorageFailure) -> RecordFile.Metadata? {
        do {
            let file = try RecordFile.open(mutation.id.bytes, of: mutation.collection, in: directory, foreignFiles)
            guard let file else { return nil }
            if mutation.precondition == .revision { return try file.metadata() }
            return RecordFile.Metadata(revision: [], expiresAt: try file.expiresAt(), sequence: 0)
        } catch let error where error.status == .corrupt {
            return RecordFile.unreadable
        }
    }

    private func permits(
        _ mutation: Mutation<FileSystemCollection>, _ position: Int,
        _ batch: borrowing WriteBatch<FileSystemCollection>, _ current: RecordFile.Metadata?
    ) -> Bool {
        guard let current else { return batch.permits(mutation, at: position, current: nil) }
        // The bytes are read before the closure returns.
        return unsafe current.revision.withUnsafeBytes {
            batch.permits(mutation, at: position, current: ($0, current.expiresAt))
        }
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
        targets[ObjectIdentifier(collection)] = Target(
            directory: directory, workplace: root.workplace(for: directory))
        return directory
    }

    /// Syncs the directories.
    private func finish(_ batch: borrowing WriteBatch<FileSystemCollection>) {
        for target in targets.values where !target.changes.isEmpty {
            do throws(StorageFailure) {
                if syncs { try root.sync(target.directory) }
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
