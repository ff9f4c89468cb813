import CLinux
import CRUDPluginKit
import Glibc
import Synchronization

/// The directory that the administrator has named, locked against other processes.
final class Root: Sendable {
    private static let lockName = ".lock"

    let directory: Directory
    /// The mode of files, and of directories without the bits for entering: who may read the root may read what is in
    /// it, except that what is open to everybody is not.
    let fileMode: mode_t
    private let directoryMode: mode_t
    /// The file system of the root, if what is made in the root gets the root's group, because it is setgid.
    private let deviceOfGroup: dev_t?
    private let syncs: Bool
    private let lock: FileLock
    /// Why a directory was not synced.
    private let failedSync = Mutex<StorageFailure?>(nil)

    /// Opens the directory and makes it if it is not there.
    ///
    /// - Throws: `invalidOptions` for a place that can never be one, `unavailable` for one that cannot be used now,
    ///   `notFound` where the host expects another storage.
    init(path: String, syncs: Bool, host: Host, _ foreignFiles: ForeignFiles) throws(StorageFailure) {
        let isNew: Bool
        (directory, isNew) = try Self.open(path, host)
        if host.expectsStorage {
            try host.requireStorage(Self.identity(of: directory, foreignFiles), in: path)
        }
        guard Attribute.areSupported(by: directory.descriptor) else {
            throw Self.unusable(path, "lies on a file system without extended attributes, where revisions are kept")
        }
        var status = stat()
        guard fstat(directory.descriptor, &status) == 0 else { throw StorageFailure("cannot examine \(path)") }
        directoryMode = 0o700 | status.st_mode & 0o770
        fileMode = 0o600 | status.st_mode & 0o660
        deviceOfGroup = status.st_mode & S_ISGID == 0 ? nil : status.st_dev
        self.syncs = syncs
        do {
            if syncs { try Directory.open("\(path)/..")?.sync() }
        } catch {
            // It has to be made again: a second sync may succeed without the disk having its name.
            if isNew { rmdir(path) }
            throw error
        }
        lock = try FileLock(Self.lockName, in: directory.descriptor, shownAs: "\(directory.path)/\(Self.lockName)")
        guard !Self.foldsCase(directory) else {
            throw Self.unusable(path, "does not tell names that differ in case, as ids and collections may")
        }
    }

    /// What tells the directory from others; 0 where an older version has made it, nil where it is empty.
    private static func identity(
        of directory: Directory, _ foreignFiles: ForeignFiles
    ) throws(StorageFailure) -> UInt64? {
        if let number = try DirectoryIdentity.stored(in: directory, foreignFiles) { return number }
        var isEmpty = true
        try directory.scan { (entry) throws(StorageFailure) in
            if !entry.name.elementsEqual(lockName.utf8) { isEmpty = false }
        }
        return isEmpty ? nil : 0
    }

    private static func open(_ path: String, _ host: Host) throws(StorageFailure) -> (Directory, isNew: Bool) {
        if host.expectsStorage, access(path, F_OK) != 0, errno == ENOENT { try host.requireStorage(nil, in: path) }
        // Whatever the umask; it can only take bits away.
        let isNew = mkdir(path, 0o700) == 0
        let code = errno
        if let directory = Directory.open(path) {
            if isNew { fchmod(directory.descriptor, 0o700) }
            return (directory, isNew)
        }
        let openingCode = errno
        switch openingCode {
        case ENOTDIR, ENAMETOOLONG, ELOOP: throw unusable(path, "is not a directory")
        case ENOENT where code == ENOENT || code == EEXIST: throw unusable(path, "has no parent directory")
        case ENOENT: throw StorageFailure(.unavailable, "cannot make \(path): \(String(cString: strerror(code)))")
        default: throw StorageFailure(errno: openingCode, "cannot open \(path)")
        }
    }

    /// Whether the lock's file is there under another spelling, too.
    private static func foldsCase(_ directory: Directory) -> Bool {
        var status = stat()
        var other = stat()
        return fstatat(directory.descriptor, lockName, &status, AT_SYMLINK_NOFOLLOW) == 0
            && fstatat(directory.descriptor, lockName.uppercased(), &other, AT_SYMLINK_NOFOLLOW) == 0
            && status.st_ino == other.st_ino
    }

    private static func unusable(_ path: String, _ reason: String) -> StorageFailure {
        StorageFailure(.invalidOptions, "\(path) \(reason)", pointer: "/directory")
    }

    // MARK: Syncing

    /// Returns once the disk has every name of a directory. If that fails, so does ``checkSyncs()`` from then on.
    func sync(_ directory: Directory) throws(StorageFailure) {
        do {
            try directory.sync()
        } catch {
            failedSync.withLock { $0 = error }
            throw error
        }
    }

    /// Throws once a directory was not synced: a second sync may succeed without the disk having what changed before
    /// the first.
    func checkSyncs() throws(StorageFailure) {
        guard let failure = failedSync.withLock({ $0 }) else { return }
        throw StorageFailure(
            .unavailable, "writes are refused until the backend is opened again, since \(failure.message)")
    }

    // MARK: Collections

    /// The directory of a collection; nil if there is none.
    func directory(of collection: FileSystemCollection) throws(StorageFailure) -> Directory? {
        try directory.directory(collection.directoryName.text)
    }

    /// The directory of a collection, made if it is not there.
    func makeDirectory(of collection: FileSystemCollection) throws(StorageFailure) -> Directory {
        // One that is found may have been made just before a crash, and not have been synced yet.
        if collection.isSynced, let found = try directory(of: collection), try isComplete(found, collection) {
            return found
        }
        let name = collection.directoryName.text
        let (made, isNew) = try directory.makeDirectory(name, mode: directoryMode)
        do {
            if collection.directoryName.isShortened {
                try Attribute.name.set(collection.name, of: made.descriptor)
                if syncs { try made.sync() }
            }
            if syncs { isNew ? try directory.sync() : try sync(directory) }
        } catch {
            if isNew { unlinkat(directory.descriptor, name, AT_REMOVEDIR) }
            throw error
        }
        collection.isSynced = true
        return made
    }

    /// Where the files of a collection are made before they get their names: where the root is setgid, in the root, so
    /// that the kernel gives them its group. The collection's directory has that group too, and is not setgid: giving a
    /// directory its mode takes that away where the daemon is no member of the group, and systemd's RestrictSUIDSGID=
    /// does not let a service give it back.
    func workplace(for collection: Directory) -> Directory {
        guard let deviceOfGroup else { return collection }
        var status = stat()
        // A file cannot be renamed from one file system to another.
        guard fstat(collection.descriptor, &status) == 0, status.st_dev == deviceOfGroup else { return collection }
        return directory
    }

    /// Whether a directory has its name; a crash may have come between.
    private func isComplete(
        _ directory: Directory, _ collection: FileSystemCollection
    ) throws(StorageFailure) -> Bool {
        guard collection.directoryName.isShortened else { return true }
        return try Attribute.name.value(of: directory.descriptor) == collection.name
    }

    /// Hands over the directory of every collection, with the collection's name; anything else is reported.
    func scanCollections(
        _ foreignFiles: ForeignFiles, _ body: (Directory, [UInt8]) throws(StorageFailure) -> Void
    ) throws(StorageFailure) {
        try directory.scan { (entry) throws(StorageFailure) in
            if isOurs(entry) { return }
            guard entry.kind == S_IFDIR, isOpenable(entry.text), let found = try directory.directory(entry.text),
                let name = try name(entry.name, found)
            else {
                foreignFiles.report(entry.name, in: directory)
                return
            }
            try body(found, name)
        }
    }

    /// Whether an entry is a file of ours beside the collections.
    private func isOurs(_ entry: Directory.Entry) -> Bool {
        if entry.name.elementsEqual(Self.lockName.utf8) { return true }
        if case .temporary = FileName(entry.name), entry.kind == S_IFREG { return true }
        let names = [ReservedSequences.fileName, DirectoryIdentity.fileName]
        return entry.kind == S_IFREG && names.contains { entry.name.elementsEqual($0.utf8) }
    }

    /// Removes files that a crash has left beside the collections.
    func removeTemporaryFiles() throws(StorageFailure) {
        try directory.scan { (entry) throws(StorageFailure) in
            if case .temporary = FileName(entry.name), entry.kind == S_IFREG { try directory.removeFile(entry.text) }
        }
    }

    private func isOpenable(_ name: String) -> Bool {
        faccessat(directory.descriptor, name, R_OK | X_OK, AT_EACCESS) == 0
    }

    private func name(_ text: UnsafeRawBufferPointer, _ found: Directory) throws(StorageFailure) -> [UInt8]? {
        switch EncodedName.meaning(of: text, isValid: RecordRules.isValidCollectionName) {
        case .name(let name): return name
        case .nothing: return nil
        case .shortened:
            guard let name = try Attribute.name.value(of: found.descriptor),
                EncodedName(name.span.bytes).text.utf8.elementsEqual(text)
            else { return nil }
            return name
        }
    }
}
