#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Darwin
#endif

/// The group whose members may open a socket.
enum SocketGroup {
    /// Its name, or else its number; nil if membership in a group is not what is missing.
    ///
    /// The permissions of the socket decide, or those of the directory that keeps it from being seen.
    static func name(ofSocketAt path: String) -> String? {
        var path = path
        var status = stat()
        var needed = mode_t(S_IWGRP)
        // The calls write one value of the type.
        while unsafe stat(path, &status) != 0 {
            guard errno == EACCES, let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return nil }
            path = String(path[..<slash])
            needed = mode_t(S_IXGRP)
        }
        return status.st_mode & needed == 0 ? nil : name(of: status.st_gid)
    }

    private static func name(of id: gid_t) -> String {
        var entry = group()
        // Null, or where the entry is.
        var found: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 64 << 10)
        // The name is copied from the buffer before that is gone.
        guard unsafe getgrgid_r(id, &entry, &buffer, buffer.count, &found) == 0, unsafe found != nil,
            let name = unsafe entry.gr_name
        else { return String(id) }
        return unsafe String(cString: name)
    }
}
