import CLinux
import CRUDModel
import Glibc

/// A plugin's shared object, or an executable, that may be trusted: a regular file which nobody but root or the
/// daemon's own user can have written, with the digest that the configuration pins. A shared object lies in one of the
/// configured directories.
package struct PluginFile {
    /// The name in the configuration.
    let name: String
    /// Where it really is, links resolved: what gets loaded, so that `$ORIGIN` in its RUNPATH means its own folder.
    package let path: String
    /// Tells the file from one that has taken its place since.
    let identity: Identity

    /// What changes when a file is replaced or written to.
    struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
        let size: off_t
        let seconds: Int
        let nanoseconds: Int

        init(_ status: stat) {
            device = status.st_dev
            inode = status.st_ino
            size = status.st_size
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    /// Finds and checks a plugin file.
    ///
    /// - Parameters:
    ///   - name: a plain name, looked up as `DIRECTORY/NAME.so`, or an absolute path inside one of the directories.
    ///   - sha256: the digest that it must have, in lower-case hexadecimal digits.
    /// - Throws: ``PluginLoadingError``.
    package init(named name: String, in directories: [String], sha256: String?) throws(PluginLoadingError) {
        self.name = name
        let roots = directories.compactMap(Self.resolve)
        let path = try Self.find(name, in: directories)
        guard let root = roots.first(where: { path.utf8.starts(with: ($0 == "/" ? $0 : $0 + "/").utf8) }) else {
            throw PluginLoadingError("\(name) lies in none of the plugin directories")
        }
        self.path = path
        try Self.checkFolders(from: root, to: path)
        identity = try Self.checkFile(path, sha256)
    }

    /// Finds and checks an executable, which may lie anywhere; every folder that leads to it is checked.
    ///
    /// - Parameters:
    ///   - name: an absolute path.
    ///   - sha256: the digest that it must have, in lower-case hexadecimal digits.
    /// - Throws: ``PluginLoadingError``.
    package init(executable name: String, sha256: String?) throws(PluginLoadingError) {
        self.name = name
        guard let path = Self.resolve(name) else { throw PluginLoadingError("there is no executable \(name)") }
        self.path = path
        try Self.checkFolders(from: "/", to: path, mayBeSticky: true)
        identity = try Self.checkFile(path, sha256)
        guard access(path, X_OK) == 0 else { throw PluginLoadingError("\(path) cannot be executed: \(Self.reason())") }
    }

    private static func checkFile(_ path: String, _ sha256: String?) throws(PluginLoadingError) -> Identity {
        let descriptor = clinux_open(path, O_RDONLY | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { throw PluginLoadingError("\(path) cannot be read: \(reason())") }
        defer { close(descriptor) }
        let identity = Identity(try check(descriptor: descriptor, path, mode: S_IFREG, what: "a regular file"))
        guard let sha256 else { return identity }
        let digest = try digest(descriptor: descriptor, path)
        guard digest == sha256 else {
            throw PluginLoadingError("\(path) has the SHA-256 \(digest), the configuration wants \(sha256)")
        }
        return identity
    }

    /// The SHA-256 of a file in lower-case hexadecimal digits.
    private static func digest(descriptor: CInt, _ path: String) throws(PluginLoadingError) -> String {
        var hash = SHA256()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        var offset: off_t = 0
        while true {
            let size = chunk.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, offset) }
            if size == 0 { return hash.finish() }
            if size < 0, errno == EINTR { continue }
            guard size > 0 else { throw PluginLoadingError("\(path) cannot be read: \(reason())") }
            hash.update(chunk[..<size])
            offset += off_t(size)
        }
    }

    private static func find(_ name: String, in directories: [String]) throws(PluginLoadingError) -> String {
        let candidates = name.utf8.first == UInt8(ascii: "/") ? [name] : directories.map { "\($0)/\(name).so" }
        for candidate in candidates {
            if let path = resolve(candidate) { return path }
        }
        throw PluginLoadingError("there is no plugin \(name): looked for \(candidates.joined(separator: ", "))")
    }

    /// Checks every folder on the way: who may write to one could put another file in the plugin's place, unless the
    /// folder is sticky and what stands in it is not theirs.
    private static func checkFolders(
        from root: String, to path: String, mayBeSticky: Bool = false
    ) throws(PluginLoadingError) {
        var folder = path
        while folder != root, let slash = folder.utf8.lastIndex(of: UInt8(ascii: "/")), slash > folder.startIndex {
            folder = String(folder[..<slash])
            let descriptor = clinux_open(folder, O_RDONLY | O_DIRECTORY, 0)
            guard descriptor >= 0 else { throw PluginLoadingError("\(folder) cannot be opened: \(reason())") }
            defer { close(descriptor) }
            _ = try check(
                descriptor: descriptor, folder, mode: S_IFDIR, what: "a directory", mayBeSticky: mayBeSticky)
        }
    }

    private static func check(
        descriptor: Int32, _ path: String, mode: mode_t, what: String, mayBeSticky: Bool = false
    ) throws(PluginLoadingError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw PluginLoadingError("\(path) cannot be examined: \(reason())")
        }
        guard status.st_mode & S_IFMT == mode else { throw PluginLoadingError("\(path) is not \(what)") }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw PluginLoadingError(
                "\(path) belongs to user \(status.st_uid), neither to root nor to the daemon's own user")
        }
        guard (mayBeSticky && status.st_mode & S_ISVTX != 0) || status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw PluginLoadingError("\(path) can be written by others: chmod go-w")
        }
        return status
    }

    private static func resolve(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func reason() -> String { String(cString: strerror(errno)) }
}
