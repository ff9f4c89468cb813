import CLinux
import CRUDModel
import CRUDWire
import Glibc

/// A directory in which only root and the daemon's own user can make, replace or remove files.
///
/// It is found from `/` on, each name in the open directory before it, and no symbolic link is followed. Every
/// directory on the way belongs to one of the two, and no other user may write to it unless it is sticky, as `/tmp` is;
/// to the last one no other user may write at all. So a path below it means the same file for as long as a backup is
/// made.
struct BackupDirectory: ~Copyable {
    let path: String
    /// O_PATH: names are looked up in it.
    let descriptor: CInt

    /// - Throws: `invalid_params` that names the parameter `directory`.
    init(_ path: String) throws(CRUDError) {
        let names = path.split(separator: "/").filter { $0 != "." }.map(String.init)
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0), !names.contains("..") else {
            throw Parameter.directory.invalid("must be an absolute path without \"..\"")
        }
        var descriptor = clinux_open_directory(AT_FDCWD, "/")
        var checked = "/"
        do throws(CRUDError) {
            try Self.check(descriptor, checked, isLast: names.isEmpty)
            for (position, name) in names.enumerated() {
                let next = clinux_open_directory(descriptor, name)
                let code = errno
                checked += (checked == "/" ? "" : "/") + name
                guard next >= 0 else { throw Self.unusable(checked, code) }
                close(descriptor)
                descriptor = next
                try Self.check(descriptor, checked, isLast: position == names.count - 1)
            }
        } catch {
            if descriptor >= 0 { close(descriptor) }
            throw error
        }
        self.path = checked
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    private static func check(_ descriptor: CInt, _ path: String, isLast: Bool) throws(CRUDError) {
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { throw unusable(path, errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw unusable(path, ENOTDIR) }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw Parameter.directory.invalid(
                "cannot be used: \(quoted(path.utf8)) belongs to user \(status.st_uid), neither to root nor to the "
                    + "daemon's own user")
        }
        let isShared = status.st_mode & (S_IWGRP | S_IWOTH) != 0
        guard !isShared || !isLast && status.st_mode & S_ISVTX != 0 else {
            throw Parameter.directory.invalid(
                "cannot be used: others may write to \(quoted(path.utf8)): chmod go-w")
        }
    }

    private static func unusable(_ path: String, _ code: Int32) -> CRUDError {
        let path = quoted(path.utf8)
        return switch code {
        case ENOENT: Parameter.directory.invalid("cannot be used: the daemon finds no directory \(path)")
        case ENOTDIR, ELOOP:
            Parameter.directory.invalid("cannot be used: \(path) is no directory, or a symbolic link to one")
        default: Parameter.directory.invalid("cannot be used: \(path): \(String(cString: strerror(code)))")
        }
    }
}
