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

    /// What changes when a file is replaced, written to or given away. The time cannot be set back.
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
            seconds = status.st_ctim.tv_sec
            nanoseconds = status.st_ctim.tv_nsec
        }
    }

    /// Finds and checks a plugin file. To its directories, from the configured one on, nobody else may write even if
    /// they are sticky.
    ///
    /// - Parameters:
    ///   - name: a plain name, looked up as `DIRECTORY/NAME.so`, or an absolute path inside one of the directories.
    ///   - sha256: the digest that it must have, in lower-case hexadecimal digits.
    /// - Throws: ``PluginLoadingError``.
    package init(named name: String, in directories: [String], sha256: String?) throws(PluginLoadingError) {
        let candidates = name.utf8.first == UInt8(ascii: "/") ? [name] : directories.map { "\($0)/\(name).so" }
        for candidate in candidates {
            guard let found = try TrustedPath(candidate) else { continue }
            let path = found.path
            let roots = directories.compactMap(Self.resolve)
            guard let root = roots.first(where: { path.utf8.starts(with: ($0 == "/" ? $0 : $0 + "/").utf8) }) else {
                let file = path == candidate ? name : "\(candidate) is a link to \(path), which"
                throw PluginLoadingError("\(file) lies in none of the plugin directories")
            }
            if let directory = found.sharedDirectory(from: root) { throw TrustedPath.writable(directory) }
            try self.init(name, found, sha256)
            return
        }
        throw PluginLoadingError(
            "there is no plugin \(name): "
                + (candidates.isEmpty
                    ? "plugins.directories is empty" : "looked for \(candidates.joined(separator: ", "))")
                + Self.hint(name, directories))
    }

    /// What may be wrong where no file was found.
    private static func hint(_ name: String, _ directories: [String]) -> String {
        var names: [String] = []
        for directory in directories {
            guard let entries = opendir(directory) else {
                if errno == ENOENT || errno == ENOTDIR { return "; there is no directory \(directory)" }
                continue
            }
            defer { closedir(entries) }
            while let entry = readdir(entries) {
                let file = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                }
                if file.hasSuffix(".so") { names.append(String(file.dropLast(3))) }
            }
        }
        return nearestName(to: name.utf8, among: names.sorted()).map { "; did you mean \($0)?" } ?? ""
    }

    /// Finds and checks an executable, which may lie anywhere.
    ///
    /// - Parameters:
    ///   - name: an absolute path.
    ///   - sha256: the digest that it must have, in lower-case hexadecimal digits.
    /// - Throws: ``PluginLoadingError``.
    package init(executable name: String, sha256: String?) throws(PluginLoadingError) {
        guard let found = try TrustedPath(name) else { throw PluginLoadingError("there is no executable \(name)") }
        try self.init(name, found, sha256)
        guard access(path, X_OK) == 0 else { throw PluginLoadingError("\(path) cannot be executed", errno) }
    }

    private init(_ name: String, _ found: borrowing TrustedPath, _ sha256: String?) throws(PluginLoadingError) {
        self.name = name
        path = found.path
        identity = Identity(found.status)
        guard let sha256 else { return }
        let digest = try Self.digest(descriptor: found.file, path)
        guard digest == sha256 else {
            throw PluginLoadingError("\(path) has the SHA-256 \(digest), the configuration wants \(sha256)")
        }
    }

    /// Checks that the file that has been checked is still in its place, so that it is what was loaded or executed
    /// meanwhile.
    ///
    /// - Throws: ``PluginLoadingError``.
    func checkUnchanged() throws(PluginLoadingError) {
        guard let found = try TrustedPath(path), found.path == path, Identity(found.status) == identity else {
            throw PluginLoadingError("\(path) has been replaced while it was being loaded")
        }
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
            guard size > 0 else { throw PluginLoadingError("\(path) cannot be read", errno) }
            hash.update(chunk[..<size])
            offset += off_t(size)
        }
    }

    private static func resolve(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
