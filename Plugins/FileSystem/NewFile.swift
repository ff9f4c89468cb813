import CRUDPluginKit
import Glibc

/// The file of a record before it has the record's name: written, with all its attributes.
final class NewFile {
    /// The record's name.
    private let name: String
    private let directory: Directory
    private let descriptor: Int32
    /// Nil once the file has the record's name.
    private var temporaryName: String?

    /// Writes the file.
    ///
    /// - Parameters:
    ///   - keepsID: whether the name does not tell the id.
    ///   - mode: the file's, whatever the umask.
    init(
        _ mutation: Mutation<FileSystemCollection>, name: String, keepsID: Bool, in directory: Directory, mode: mode_t
    ) throws(StorageFailure) {
        let temporaryName = FileName.makeTemporary()
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        descriptor = openat(directory.descriptor, temporaryName, flags, 0o600)
        guard descriptor >= 0 else { throw StorageFailure("cannot make a file in \(directory.path)") }
        self.name = name
        self.directory = directory
        self.temporaryName = temporaryName
        // From here on `deinit` removes the file if anything fails.
        fchmod(descriptor, mode)
        try write(mutation.item)
        try setAttributes(of: mutation, keepsID: keepsID)
    }

    deinit {
        if let temporaryName { unlinkat(directory.descriptor, temporaryName, 0) }
        close(descriptor)
    }

    private func write(_ item: UnsafeRawBufferPointer) throws(StorageFailure) {
        var rest = item[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw StorageFailure("cannot write in \(directory.path)") }
            rest = rest.dropFirst(count)
        }
    }

    private func setAttributes(
        of mutation: Mutation<FileSystemCollection>, keepsID: Bool
    ) throws(StorageFailure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StorageFailure("cannot examine a new file") }
        try Attribute.modified.set(status.modified, of: descriptor)
        try Attribute.revision.set(mutation.revision, of: descriptor)
        if keepsID { try Attribute.id.set(mutation.id, of: descriptor) }
    }

    /// Returns once the disk has content and attributes.
    func sync() throws(StorageFailure) {
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync a new file in \(directory.path)") }
    }

    /// Puts the file in the record's place.
    func rename() throws(StorageFailure) {
        guard let temporaryName else { return }
        guard renameat(directory.descriptor, temporaryName, directory.descriptor, name) == 0 else {
            throw StorageFailure("cannot rename a new file to \(directory.path)/\(name)")
        }
        self.temporaryName = nil
    }
}
