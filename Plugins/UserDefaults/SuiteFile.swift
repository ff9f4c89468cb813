import CLinux
import CRUDPluginKit
import Glibc

/// The file of a suite where Foundation has it, its copy, and the lock that keeps other daemons out.
final class SuiteFile {
    let path: String
    private let directory: String
    private let copyPath: String
    private let emptyList = Array(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0"><dict/></plist>

        """.utf8)
    private let lock: FileLock
    /// The file when the copy was made.
    private var copied: Status?
    /// Why the directory was not synced.
    private var failedSync: StorageFailure?

    /// What changes whenever the file does.
    struct Status: Equatable {
        private let numbers: [Int]

        init(_ status: stat) {
            numbers = [
                Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
            ]
        }
    }

    /// - Throws: `unavailable` if there is no place for the file or another process has locked it.
    init(suite: String) throws(StorageFailure) {
        directory = try Self.directory()
        path = "\(directory)/\(suite).plist"
        // Foundation takes every file whose name ends in .plist for a suite.
        copyPath = "\(directory)/.\(suite).plist.crudd-copy"
        // Its parent is there, or this fails and the lock says so.
        let isNew = mkdir(directory, 0o700) == 0
        do {
            // One that is found may have been made just before a crash.
            if access("\(directory)/..", R_OK) == 0 { try Self.sync("\(directory)/..") }
        } catch {
            // It has to be made again: a second sync may succeed without the disk having its name.
            if isNew { rmdir(directory) }
            throw error
        }
        lock = try FileLock("\(directory)/.\(suite).plist.crudd-lock")
    }

    /// The directory that Foundation keeps its files in.
    private static func directory() throws(StorageFailure) -> String {
        if let configuration = getenv("XDG_CONFIG_HOME"), configuration.pointee == CChar(UInt8(ascii: "/")) {
            return String(cString: configuration)
        }
        guard let home = getenv("HOME"), home.pointee == CChar(UInt8(ascii: "/")) else {
            throw StorageFailure(
                .unavailable, "HOME is not set to an absolute path; the file of a suite lies in $HOME/.config")
        }
        return String(cString: home) + "/.config"
    }

    // MARK: The list

    /// Nil if there is no file. Anything but a file is refused: Foundation would write through a link.
    func status() throws(StorageFailure) -> Status? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw StorageFailure("cannot examine \(path)")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StorageFailure(.unavailable, "\(path) is not a regular file")
        }
        return Status(status)
    }

    /// The content of the file; nil if there is none.
    func bytes() throws(StorageFailure) -> [UInt8]? {
        try status() == nil ? nil : Self.read(path)
    }

    /// Makes the file with an empty list, for nobody else to read.
    func create() throws(StorageFailure) {
        try replace(with: emptyList)
    }

    /// The file, open before Foundation writes it.
    ///
    /// Foundation ignores what its own sync says, and Linux tells an error only to descriptors that were open when it
    /// happened.
    struct Opened: ~Copyable {
        fileprivate let descriptor: Int32

        deinit {
            close(descriptor)
        }
    }

    func open() throws(StorageFailure) -> Opened {
        let descriptor = clinux_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
        guard descriptor >= 0 else { throw StorageFailure("cannot open \(path)") }
        return Opened(descriptor: descriptor)
    }

    /// Returns once the disk has what Foundation has written.
    func sync(_ opened: borrowing Opened) throws(StorageFailure) {
        guard fsync(opened.descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
        try syncDirectory()
    }

    /// Throws once the directory was not synced: a second sync may succeed without the disk having what changed before
    /// the first.
    func checkSyncs() throws(StorageFailure) {
        guard let failedSync else { return }
        throw StorageFailure(
            .unavailable, "writes are refused until the backend is opened again, since \(failedSync.message)")
    }

    private func syncDirectory() throws(StorageFailure) {
        do {
            try Self.sync(directory)
        } catch {
            failedSync = error
            throw error
        }
    }

    /// Whether a write has used up the last room there was.
    var isDiskFull: Bool {
        var status = statvfs()
        return statvfs(directory, &status) == 0 && status.f_bavail == 0
    }

    // MARK: The copy

    /// The content of the copy; nil if there is none.
    func copy() throws(StorageFailure) -> [UInt8]? {
        try Self.read(copyPath)
    }

    /// Allocates the room that a copy of the list will need, so that a full disk does not keep what makes the list
    /// shorter from being written.
    func reserveCopy() throws(StorageFailure) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw StorageFailure("cannot examine \(path)") }
        // Somebody may have removed it.
        let descriptor = clinux_open(copyPath, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0o600)
        guard descriptor >= 0 else { throw StorageFailure("cannot open \(copyPath)") }
        defer { close(descriptor) }
        // A file system that cannot do this may lack the room later.
        guard clinux_allocate(descriptor, max(1, status.st_size)) == 0 || errno == EOPNOTSUPP else {
            throw StorageFailure("cannot allocate \(copyPath)")
        }
    }

    /// Makes a synced copy of the list, unless there is one. A crash in between tears the copy, while the list is
    /// whole.
    func makeCopy() throws(StorageFailure) {
        guard let status = try status(), status != copied, let list = try Self.read(path) else { return }
        let isNew = copied == nil
        copied = nil
        try Self.write(list, over: copyPath)
        if isNew { try syncDirectory() }
        copied = status
    }

    /// Puts a list in the place of what is there.
    func restore(_ list: [UInt8]) throws(StorageFailure) {
        // What is torn need not take room on a full disk; the copy counts already.
        truncate(path, 0)
        try replace(with: list)
    }

    /// A file of this content takes the place of what is there, whole or not at all.
    private func replace(with list: [UInt8]) throws(StorageFailure) {
        let temporaryPath = "\(copyPath)-temporary"
        try Self.write(list, over: temporaryPath)
        guard rename(temporaryPath, path) == 0 else {
            throw StorageFailure("cannot rename \(temporaryPath) to \(path)")
        }
        try syncDirectory()
    }

    // MARK: The identity

    private var identityPath: String { copyPath.replacing("crudd-copy", with: "crudd-identity") }

    /// The number in the file; 0 where it cannot be one, nil where there is none.
    func storedIdentity() throws(StorageFailure) -> UInt64? {
        try Self.read(identityPath).map { UInt64(String(decoding: $0, as: UTF8.self).prefix { $0 != "\n" }) ?? 0 }
    }

    /// The number that tells the suite from others, in a file beside it; made where there is none.
    ///
    /// - Returns: nil where it cannot be read or made.
    func identity() throws(StorageFailure) -> UInt64? {
        if let number = try storedIdentity() { return number }
        let number = History.makeIdentity()
        let temporaryPath = "\(identityPath)-temporary"
        try Self.write(Array("\(number)\n".utf8), over: temporaryPath)
        guard rename(temporaryPath, identityPath) == 0 else {
            throw StorageFailure("cannot rename \(temporaryPath) to \(identityPath)")
        }
        try syncDirectory()
        return number
    }

    // MARK: Files

    private static func read(_ path: String) throws(StorageFailure) -> [UInt8]? {
        let descriptor = clinux_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StorageFailure("cannot open \(path)")
        }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw StorageFailure("cannot read \(path)") }
            if count == 0 { return content }
            content += chunk[..<count]
        }
    }

    /// Returns once the disk has the content. What the file had is written over, so that its room is not given up.
    private static func write(_ content: [UInt8], over path: String) throws(StorageFailure) {
        let descriptor = clinux_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0o600)
        guard descriptor >= 0 else { throw StorageFailure("cannot open \(path)") }
        defer { close(descriptor) }
        var rest = content[...]
        while !rest.isEmpty {
            // The bytes are written before the closure returns.
            let count = unsafe rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw StorageFailure("cannot write \(path)") }
            rest = rest.dropFirst(count)
        }
        guard ftruncate(descriptor, content.count) == 0 else { throw StorageFailure("cannot cut \(path)") }
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
    }

    private static func sync(_ path: String) throws(StorageFailure) {
        let descriptor = clinux_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)
        guard descriptor >= 0 else { throw StorageFailure("cannot open \(path)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
    }
}
