import CLinux
import Glibc

/// What storage takes on its disk, and what is free there.
struct DiskUsage: Sendable {
    /// What has been allocated, as du(1) counts it; nil where that is not known.
    private(set) var bytes: Int?
    /// What the daemon may still write; nil where that is not known.
    private(set) var freeBytes: Int?

    /// Asks the disk, which may take any time.
    ///
    /// - Parameters:
    ///   - path: of a file, which takes the files beside it too whose names begin with its name and a dash; or of a
    ///     directory with everything in it.
    ///   - deadline: when counting files is given up.
    init(of path: String, until deadline: ContinuousClock.Instant) {
        freeBytes = Self.freeBytes(at: path)
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            bytes = Self.bytes(in: path, until: deadline)
        } else {
            bytes = Self.bytes(at: path, until: deadline)
        }
    }

    private static func freeBytes(at path: String) -> Int? {
        var system = Glibc.statvfs()
        guard statvfs(path, &system) == 0 else { return nil }
        let (bytes, isTooLarge) = Int(clamping: system.f_bavail).multipliedReportingOverflow(
            by: Int(clamping: system.f_frsize))
        return isTooLarge ? .max : bytes
    }

    /// Of a file with those beside it.
    private static func bytes(at path: String, until deadline: ContinuousClock.Instant) -> Int? {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        let name = Array(path.utf8[path.utf8.index(after: slash)...])
        var bytes = 0
        let isWhole = forEachEntry(of: String(path[...slash]), until: deadline) { entry, status, _ in
            let isBeside = entry.starts(with: name + [UInt8(ascii: "-")]) && status.st_mode & S_IFMT == S_IFREG
            if isBeside { bytes += allocated(status) }
        }
        // The path may be a link.
        var status = stat()
        guard isWhole, stat(path, &status) == 0 else { return nil }
        return bytes + allocated(status)
    }

    /// Of a directory with everything in it.
    private static func bytes(in directory: String, until deadline: ContinuousClock.Instant) -> Int? {
        var bytes = 0
        var directories = [directory]
        while let next = directories.popLast() {
            let isWhole = forEachEntry(of: next, until: deadline) { _, status, path in
                bytes += allocated(status)
                if status.st_mode & S_IFMT == S_IFDIR { directories.append(path()) }
            }
            guard isWhole else { return nil }
        }
        return bytes
    }

    private static func allocated(_ status: stat) -> Int { Int(clamping: status.st_blocks) * 512 }

    /// Calls `body` with the name, the status and the path of each entry of a directory; links are not followed.
    ///
    /// - Returns: false where it cannot be read, or the deadline came first.
    private static func forEachEntry(
        of directory: String, until deadline: ContinuousClock.Instant,
        _ body: (_ name: [UInt8], stat, _ path: () -> String) -> Void
    ) -> Bool {
        guard let stream = opendir(directory) else { return false }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            guard ContinuousClock.now < deadline else { return false }
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name == Array(".".utf8) || name == Array("..".utf8) { continue }
            var status = stat()
            // What has been removed meanwhile takes nothing.
            let isThere = (name + [0]).withUnsafeBufferPointer { bytes in
                bytes.withMemoryRebound(to: CChar.self) { name in
                    name.baseAddress.map { fstatat(dirfd(stream), $0, &status, AT_SYMLINK_NOFOLLOW) == 0 } ?? false
                }
            }
            guard isThere else { continue }
            body(name, status) { "\(directory)/\(String(decoding: name, as: UTF8.self))" }
        }
        return true
    }
}
