import CLinux
import CRUDModel
import CRUDWire
import Glibc

/// The file that a backup is written into. It has another name until it is complete and on the disk; an incomplete one
/// is removed with this value, and one that a killed daemon has left by the next backup: it has no lock (flock(2)).
struct BackupFile: ~Copyable {
    private let directory: BackupDirectory
    private let name: String
    private let descriptor: CInt
    private var isTemporary = true

    /// Makes an empty file that only the daemon's user may read.
    ///
    /// - Parameters:
    ///   - name: the name that it gets in the end.
    ///   - directory: where it is made.
    /// - Throws: `invalid_params` where the daemon cannot make it, `no_space`, or `unavailable` where one of these
    ///   names exists.
    init(named name: String, in directory: consuming BackupDirectory) throws(CRUDError) {
        var status = stat()
        guard fstatat(directory.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) != 0 else {
            throw Self.exists(name, directory.path)
        }
        let descriptor = openat(
            directory.descriptor, Self.temporaryName(name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let code = errno
            throw code == EEXIST ? Self.exists(name, directory.path) : Self.error(code, directory.path)
        }
        // The umask can only have taken bits away.
        fchmod(descriptor, 0o600)
        // Only another daemon that searches for unfinished backups opens it, too.
        flock(descriptor, LOCK_EX)
        self.name = name
        self.directory = directory
        self.descriptor = descriptor
    }

    deinit {
        if isTemporary { unlinkat(directory.descriptor, Self.temporaryName(name), 0) }
        close(descriptor)
    }

    private static let temporarySuffix = ".partial"

    private static func temporaryName(_ name: String) -> String { ".\(name)\(temporarySuffix)" }

    /// Removes what killed daemons have left of backups.
    ///
    /// - Parameter prefix: how the names of these begin.
    static func removeRemains(of prefix: String, in directory: borrowing BackupDirectory) {
        let open = openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard open >= 0 else { return }
        guard let stream = fdopendir(open) else {
            close(open)
            return
        }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
            }
            guard name.hasPrefix(".\(prefix)"), name.hasSuffix(temporarySuffix) else { continue }
            let file = openat(directory.descriptor, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard file >= 0 else { continue }
            if flock(file, LOCK_EX | LOCK_NB) == 0 { unlinkat(directory.descriptor, name, 0) }
            close(file)
        }
    }

    /// Where the copy is written.
    var temporaryPath: String { path(of: Self.temporaryName(name)) }
    /// Where it is in the end.
    var path: String { path(of: name) }

    private func path(of name: String) -> String { (directory.path == "/" ? "" : directory.path) + "/\(name)" }

    /// Waits until the disk has what has been written so far.
    func sync() throws(CRUDError) {
        if fsync(descriptor) != 0 { throw Self.error(errno, directory.path) }
    }

    /// How long it is.
    var byteCount: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Gives the file its name, once the disk has all of it. A file of this name is not replaced.
    mutating func finish() throws(CRUDError) {
        try sync()
        let temporary = Self.temporaryName(name)
        guard linkat(directory.descriptor, temporary, directory.descriptor, name, 0) == 0 else {
            let code = errno
            throw code == EEXIST ? Self.exists(name, directory.path) : Self.error(code, directory.path)
        }
        isTemporary = false
        unlinkat(directory.descriptor, temporary, 0)
        let open = openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard open >= 0 else { return }
        defer { close(open) }
        if fsync(open) != 0 { throw Self.error(errno, directory.path) }
    }

    private static func exists(_ name: String, _ directory: String) -> CRUDError {
        CRUDError(
            .unavailable,
            "\(quoted(name.utf8)), or a backup of that name that is being made, is in \(quoted(directory.utf8)) already"
        )
    }

    private static func error(_ code: Int32, _ directory: String) -> CRUDError {
        let path = quoted(directory.utf8)
        return switch code {
        case ENOSPC, EDQUOT, EFBIG: CRUDError(.noSpace, "there is no room for the backup in \(path)")
        case EACCES, EPERM, EROFS:
            Parameter.directory.invalid(
                "cannot be used: the daemon, user \(geteuid()), may not write to \(path) "
                    + "(\(String(cString: strerror(code))))")
        default:
            CRUDError(.unavailable, "the backup cannot be written to \(path): \(String(cString: strerror(code)))")
        }
    }
}
