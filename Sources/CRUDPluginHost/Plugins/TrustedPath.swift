import CLinux
import Glibc

/// A file that nobody but root and the daemon's own user can have put where it is, found from `/` on.
///
/// Every directory and symbolic link on the way, and the file itself, belongs to one of the two, and nobody else may
/// write to it. A sticky directory such as `/tmp` is an exception: only its owner replaces what is there. Each name is
/// looked up in the open directory before it, so what has been checked is what is followed.
struct TrustedPath: ~Copyable {
    /// The open file.
    private(set) var file: CInt = -1
    private(set) var status = stat()
    private var name = ""
    private var directories: [Directory] = []

    private struct Directory {
        let name: String
        let descriptor: CInt
        /// Whether others may write to it, which is sticky.
        let isShared: Bool
    }

    /// As many as the kernel follows.
    private static let maximumLinks = 40

    /// nil where there is no such file.
    ///
    /// - Parameter path: absolute.
    /// - Throws: ``PluginLoadingError`` for a file that is not to be trusted, is not a regular one or cannot be read.
    init?(_ path: String) throws(PluginLoadingError) {
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0), try follow(path) else { return nil }
        guard file >= 0 else { throw PluginLoadingError("\(self.path) is not a regular file") }
    }

    deinit {
        for directory in directories { close(directory.descriptor) }
        if file >= 0 { close(file) }
    }

    /// The path without links.
    var path: String { name.isEmpty ? directoryPath(directories.count) : path(of: name) }

    private func path(of name: String) -> String { directories.dropFirst().map { "/\($0.name)" }.joined() + "/\(name)" }

    /// The first directory that others may write to, of `root` and those below.
    ///
    /// - Parameter root: a directory on the way, without links.
    func sharedDirectory(from root: String) -> String? {
        let depth = Self.names(in: root).count
        return directories.indices.first { $0 >= depth && directories[$0].isShared }.map { directoryPath($0 + 1) }
    }

    private func directoryPath(_ count: Int) -> String {
        "/" + directories.prefix(count).dropFirst().map(\.name).joined(separator: "/")
    }

    // MARK: Following

    /// - Returns: false where there is no such file.
    private mutating func follow(_ path: String) throws(PluginLoadingError) -> Bool {
        // The next one last.
        var names = Array(Self.names(in: path).reversed())
        var links = 0
        guard try enter("/") else { return false }
        while let name = names.popLast() {
            if name == ".." {
                if directories.count > 1 { close(directories.removeLast().descriptor) }
                continue
            }
            var status = stat()
            guard fstatat(current, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return try isMissing(name) }
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                guard try enter(name) else { return false }
            case S_IFLNK:
                links += 1
                guard links <= Self.maximumLinks, let target = target(of: name) else { return false }
                try checkOwner(status, self.path(of: name))
                if target.utf8.first == UInt8(ascii: "/") {
                    for directory in directories[1...] { close(directory.descriptor) }
                    directories.removeSubrange(1...)
                }
                names += Self.names(in: target).reversed()
            default:
                guard names.isEmpty else { return false }
                self.name = name
                if status.st_mode & S_IFMT == S_IFREG { try open(name) }
            }
        }
        return true
    }

    private var current: CInt { directories.last?.descriptor ?? AT_FDCWD }

    private mutating func enter(_ name: String) throws(PluginLoadingError) -> Bool {
        let descriptor = clinux_open_directory(current, name)
        guard descriptor >= 0 else { return try isMissing(name) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            close(descriptor)
            return try isMissing(name)
        }
        let isShared = status.st_mode & (S_IWGRP | S_IWOTH) != 0
        directories.append(Directory(name: name, descriptor: descriptor, isShared: isShared))
        try checkOwner(status, path)
        if isShared, status.st_mode & S_ISVTX == 0 { throw Self.writable(path) }
        return true
    }

    private mutating func open(_ name: String) throws(PluginLoadingError) {
        // It may have become a pipe since, which must not be waited for.
        file = openat(current, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0, fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw PluginLoadingError("\(path) cannot be read", errno)
        }
        try checkOwner(status, path)
        if status.st_mode & (S_IWGRP | S_IWOTH) != 0 { throw Self.writable(path) }
    }

    private func checkOwner(_ status: stat, _ path: String) throws(PluginLoadingError) {
        guard status.st_uid != 0, status.st_uid != geteuid() else { return }
        throw PluginLoadingError(
            "\(path) belongs to user \(status.st_uid), neither to root nor to the daemon's own user")
    }

    /// That a name is not there, or has become something else.
    private func isMissing(_ name: String) throws(PluginLoadingError) -> Bool {
        let code = errno
        if [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(code) { return false }
        throw PluginLoadingError("\(path(of: name)) cannot be examined", code)
    }

    private func target(of link: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let target = buffer.baseAddress else { return nil }
            let count = readlinkat(current, link, target, buffer.count)
            return count < 0 ? nil : String(decoding: UnsafeRawBufferPointer(buffer)[..<count], as: UTF8.self)
        }
    }

    private static func names(in path: String) -> [String] {
        path.split(separator: "/").filter { $0 != "." }.map(String.init)
    }

    static func writable(_ path: String) -> PluginLoadingError {
        PluginLoadingError("\(path) can be written by others: chmod go-w")
    }
}
