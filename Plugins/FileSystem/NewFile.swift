import CRUDPluginKit
import Glibc

/// A file under a temporary name. It is removed unless it is renamed.
final class NewFile {
    /// Where it is made.
    private let directory: Directory
    private let descriptor: Int32
    /// Nil once the file has its name.
    private var temporaryName: String?

    /// - Parameter mode: the file's, whatever the umask.
    init(in directory: Directory, mode: mode_t) throws(StorageFailure) {
        let temporaryName = FileName.makeTemporary()
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        descriptor = openat(directory.descriptor, temporaryName, flags, 0o600)
        guard descriptor >= 0 else { throw StorageFailure("cannot make a file in \(directory.path)") }
        self.directory = directory
        self.temporaryName = temporaryName
        fchmod(descriptor, mode)
    }

    deinit {
        if let temporaryName { unlinkat(directory.descriptor, temporaryName, 0) }
        close(descriptor)
    }

    func write(_ content: RawSpan) throws(StorageFailure) {
        var rest = content
        while !rest.isEmpty {
            // The bytes are written before the closure returns.
            let count = unsafe rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw StorageFailure("cannot write in \(directory.path)") }
            rest = rest.extracting(droppingFirst: count)
        }
    }

    /// Stores what belongs to a record beside its item, after the content has been written.
    ///
    /// - Parameter keepsID: whether the name of the file will not tell the id.
    func setAttributes(
        of mutation: Mutation<FileSystemCollection>, keepsID: Bool
    ) throws(StorageFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StorageFailure("cannot examine a new file") }
        try Attribute.modified.set(status.modified, of: descriptor)
        try Attribute.revision.set(mutation.revision, of: descriptor)
        if mutation.sequence != 0 { try Attribute.sequence.set("\(mutation.sequence)".utf8, of: descriptor) }
        if mutation.expiresAt != 0 { try Attribute.expires.set("\(mutation.expiresAt)".utf8, of: descriptor) }
        if keepsID { try Attribute.id.set(mutation.id, of: descriptor) }
    }

    /// Returns once the disk has content and attributes.
    func sync() throws(StorageFailure) {
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync a new file in \(directory.path)") }
    }

    /// Gives the file its name, replacing the file or the empty directory that has that name.
    ///
    /// - Parameter destination: the directory that gets it, of the same file system; nil: the one in which it is.
    /// - Throws: `corrupt` where a directory that is not empty has the name.
    func rename(to name: String, in destination: Directory? = nil) throws(StorageFailure) {
        guard let temporaryName else { return }
        let destination = destination ?? directory
        func rename() -> Bool { renameat(directory.descriptor, temporaryName, destination.descriptor, name) == 0 }
        var isRenamed = rename()
        if !isRenamed, errno == EISDIR {
            try destination.removeFile(name)
            isRenamed = rename()
        }
        guard isRenamed else { throw StorageFailure("cannot rename a new file to \(destination.path)/\(name)") }
        self.temporaryName = nil
    }
}
