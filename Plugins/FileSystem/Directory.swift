import CRUDPluginKit
import Glibc

/// An open directory. Everything below is reached through it, one name at a time and never through a link.
final class Directory: Sendable {
    let descriptor: Int32
    /// For messages.
    let path: String

    private init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    /// Opens a directory by its path, in which links are followed; nil with errno if that fails.
    static func open(_ path: String) -> Directory? {
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        return descriptor < 0 ? nil : Directory(descriptor: descriptor, path: path)
    }

    /// Opens a directory inside; nil if there is none of that name.
    func directory(_ name: String) throws(StorageFailure) -> Directory? {
        let descriptor = openat(self.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        if descriptor >= 0 { return Directory(descriptor: descriptor, path: "\(path)/\(name)") }
        // A link is ENOTDIR here.
        if errno == ENOENT || errno == ENOTDIR { return nil }
        throw StorageFailure("cannot open \(path)/\(name)")
    }

    /// Makes a directory inside, unless there is one, whatever the umask.
    func makeDirectory(_ name: String, mode: mode_t) throws(StorageFailure) -> (Directory, isNew: Bool) {
        let isNew = mkdirat(descriptor, name, mode) == 0
        guard isNew || errno == EEXIST else { throw StorageFailure("cannot make \(path)/\(name)") }
        guard let directory = try directory(name) else {
            throw StorageFailure(.unavailable, "\(path)/\(name) is not a directory")
        }
        if isNew { fchmod(directory.descriptor, mode) }
        return (directory, isNew)
    }

    /// Removes a file inside, or an empty directory in its place, and returns whether there was one.
    ///
    /// - Throws: `corrupt` for a directory that is not empty: it stays.
    @discardableResult
    func removeFile(_ name: String) throws(StorageFailure) -> Bool {
        if unlinkat(descriptor, name, 0) == 0 { return true }
        if errno == EISDIR, unlinkat(descriptor, name, AT_REMOVEDIR) == 0 { return true }
        switch errno {
        case ENOENT: return false
        case ENOTEMPTY, EEXIST: throw isInPlace(ofFile: name)
        default: throw StorageFailure("cannot remove \(path)/\(name)")
        }
    }

    /// A directory stands where a file should: that concerns this file alone.
    func isInPlace(ofFile name: String) -> StorageFailure {
        StorageFailure(.corrupt, "\(path)/\(name) is a directory where a record's file should be")
    }

    /// Returns once the disk has every name.
    func sync() throws(StorageFailure) {
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
    }

    // MARK: Expiry

    /// Whether a file in it may have an expiry. Without one, counting need not open files.
    func mayHaveExpiringFiles() throws(StorageFailure) -> Bool {
        try Attribute.expiring.value(of: descriptor) != nil
    }

    /// Has it be known that a file in it may have an expiry.
    func markExpiringFiles(syncs: Bool) throws(StorageFailure) {
        if try mayHaveExpiringFiles() { return }
        try Attribute.expiring.set("1".utf8, of: descriptor)
        if syncs { try sync() }
    }

    // MARK: Scanning

    /// A name in a directory.
    struct Entry {
        /// Valid until the next one is asked for.
        let name: UnsafeRawBufferPointer
        /// S_IFREG, S_IFDIR and so on.
        let kind: mode_t

        var text: String { String(decoding: name, as: UTF8.self) }
    }

    /// Hands over every name but `.` and `..`, in no order.
    func scan(_ body: (Entry) throws(StorageFailure) -> Void) throws(StorageFailure) {
        let names = try DirectoryNames(of: self)
        while let entry = try names.next() { try body(entry) }
    }

    /// Nil for what has gone meanwhile.
    fileprivate func kind(of name: UnsafeRawPointer, hint: UInt8) -> mode_t? {
        // DT_REG and the others are S_IFREG and the others without their zeros; 0 is unknown.
        if hint != 0 { return mode_t(hint) << 12 }
        var status = stat()
        guard fstatat(descriptor, name.assumingMemoryBound(to: CChar.self), &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return nil
        }
        return status.st_mode & S_IFMT
    }
}

/// The names in a directory but `.` and `..`, in no order, one after the other.
final class DirectoryNames {
    private let directory: Directory
    private let stream: OpaquePointer

    init(of directory: Directory) throws(StorageFailure) {
        // A description of its own, as threads may scan at the same time.
        let descriptor = openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0, let stream = fdopendir(descriptor) else {
            let failure = StorageFailure("cannot open \(directory.path)")
            if descriptor >= 0 { close(descriptor) }
            throw failure
        }
        self.directory = directory
        self.stream = stream
    }

    deinit {
        closedir(stream)
    }

    /// The next one; nil: there is none.
    func next() throws(StorageFailure) -> Directory.Entry? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw StorageFailure("cannot read \(directory.path)") }
                return nil
            }
            // The name is terminated and stays in place until the next `readdir`. Its declared size is a mere maximum,
            // hence by the address.
            let offset = MemoryLayout<dirent>.offset(of: \.d_name)!
            let start = UnsafeRawPointer(entry) + offset
            let name = UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self)))
            if name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8) { continue }
            guard let kind = directory.kind(of: start, hint: entry.pointee.d_type) else { continue }
            return Directory.Entry(name: name, kind: kind)
        }
    }
}
