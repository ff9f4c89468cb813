import CLinux
package import CRUDPluginKit
import Glibc

/// A directory of the file system that a process has for itself, as long as this object lives.
package final class LogDirectory: LogFiles {
    private static let lockName = ".lock"

    package let path: String
    private let descriptor: Int32
    private let lock: FileLock

    /// Opens the directory and makes it with mode 0700 if it is not there, and locks it.
    ///
    /// - Parameters:
    ///   - path: absolute; links are followed.
    ///   - option: a JSON pointer to the option that names it, for failures.
    ///   - host: if it expects storage, nothing is made.
    /// - Throws: `invalidOptions` for what can never be the directory, `unavailable` for what cannot be it now,
    ///   `notFound` where the host expects storage and there is no directory.
    package init(_ path: String, option: String, host: Host) throws(StorageFailure) {
        self.path = path
        let isNew: Bool
        (descriptor, isNew) = try Self.open(path, option: option, host)
        do {
            // A directory that is there may have been made just before a crash.
            try Self.syncParent(of: path)
            lock = try FileLock(Self.lockName, in: descriptor, shownAs: "\(path)/\(Self.lockName)")
        } catch {
            close(descriptor)
            // It has to be made again: a second sync may succeed without the disk having its name.
            if isNew { rmdir(path) }
            throw error
        }
    }

    deinit { close(descriptor) }

    private static func open(_ path: String, option: String, _ host: Host) throws(StorageFailure) -> (Int32, Bool) {
        func unusable(_ reason: String) -> StorageFailure {
            StorageFailure(.invalidOptions, "\(path) \(reason)", pointer: option)
        }
        if host.expectsStorage, access(path, F_OK) != 0, errno == ENOENT { try host.requireStorage(nil, in: path) }
        let isNew = mkdir(path, 0o700) == 0
        let code = errno
        let descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY, 0)
        if descriptor >= 0 {
            // The umask can only have taken bits away.
            if isNew { fchmod(descriptor, 0o700) }
            return (descriptor, isNew)
        }
        let openingCode = errno
        switch openingCode {
        case ENOTDIR, ENAMETOOLONG, ELOOP: throw unusable("is not a directory")
        case ENOENT where code == ENOENT || code == EEXIST: throw unusable("has no parent directory")
        case ENOENT: throw StorageFailure(.unavailable, "cannot make \(path): \(String(cString: strerror(code)))")
        default: throw StorageFailure(errno: openingCode, "cannot open \(path)")
        }
    }

    private static func syncParent(of path: String) throws(StorageFailure) {
        let parent = clinux_open("\(path)/..", O_RDONLY | O_DIRECTORY, 0)
        // One that may not be read cannot be synced: it was made by another user, with the directory.
        guard parent >= 0 else { return }
        defer { close(parent) }
        guard fsync(parent) == 0 else { throw StorageFailure("cannot sync the directory of \(path)") }
    }

    // MARK: Files

    package func names() throws(StorageFailure) -> [String] {
        // A description of its own: the position of `descriptor` stays at the start.
        let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let stream = fdopendir(copy) else {
            let failure = StorageFailure("cannot open \(path)")
            if copy >= 0 { close(copy) }
            throw failure
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw StorageFailure("cannot read \(path)") }
                return names
            }
            // The name is terminated and stays in place until the next `readdir`.
            let name = UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!
            names.append(String(cString: name.assumingMemoryBound(to: CChar.self)))
        }
    }

    package func open(_ name: String, isNew: Bool) throws(StorageFailure) -> any LogFile {
        let flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let file = openat(descriptor, name, isNew ? flags | O_CREAT | O_EXCL : flags, 0o600)
        guard file >= 0 else { throw StorageFailure("cannot \(isNew ? "make" : "open") \(path)/\(name)") }
        let opened = SystemLogFile(owning: file, path: "\(path)/\(name)")
        var status = stat()
        guard fstat(file, &status) == 0 else { throw StorageFailure("cannot examine \(path)/\(name)") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StorageFailure(.unavailable, "\(path)/\(name) is not a regular file")
        }
        // The umask can only have taken bits away.
        if isNew { fchmod(file, 0o600) }
        return opened
    }

    package func remove(_ name: String) throws(StorageFailure) {
        guard unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else {
            throw StorageFailure("cannot remove \(path)/\(name)")
        }
    }

    package func sync() throws(StorageFailure) {
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
    }
}

private final class SystemLogFile: LogFile {
    private let descriptor: Int32
    private let path: String

    init(owning descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { close(descriptor) }

    func size() throws(StorageFailure) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StorageFailure("cannot examine \(path)") }
        return Int(status.st_size)
    }

    func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageFailure) -> Int {
        var done = 0
        while done < buffer.count {
            // `done` is below the buffer's size.
            let count = pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset + done))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw StorageFailure("cannot read \(path)") }
            if count == 0 { break }
            done += count
        }
        return done
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StorageFailure) {
        var done = 0
        while done < bytes.count {
            // `done` is below the number of bytes.
            let count = pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(offset + done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw StorageFailure("cannot write \(path)") }
            done += count
        }
    }

    func sync() throws(StorageFailure) {
        guard fdatasync(descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
    }
}
