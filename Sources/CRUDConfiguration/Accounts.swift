import Glibc

/// Users and groups as the system knows them, through the name service switch.
package enum Accounts {
    enum LookupResult {
        case id(UInt32)
        case absent
        /// The name service failed with this `errno`.
        case failure(Int32)
    }

    static func user(_ name: String) -> LookupResult {
        lookUp { buffer in
            var entry = passwd()
            // Null, or where the entry is.
            var found: UnsafeMutablePointer<passwd>?
            let code = getpwnam_r(name, &entry, &buffer, buffer.count, &found)
            return (code, found == nil ? nil : entry.pw_uid)
        }
    }

    static func group(_ name: String) -> LookupResult {
        lookUp { buffer in
            var entry = GroupEntry()
            // Null, or where the entry is.
            var found: UnsafeMutablePointer<GroupEntry>?
            let code = getgrnam_r(name, &entry, &buffer, buffer.count, &found)
            return (code, found == nil ? nil : entry.gr_gid)
        }
    }

    /// The name of a user; nil if there is none.
    package static func name(ofUser uid: UInt32) -> String? {
        var entry = passwd()
        return name { buffer in
            var found: UnsafeMutablePointer<passwd>?
            let code = getpwuid_r(uid, &entry, &buffer, buffer.count, &found)
            return (code, found?.pointee.pw_name.map { String(cString: $0) })
        }
    }

    /// The name of a group; nil if there is none.
    package static func name(ofGroup gid: UInt32) -> String? {
        var entry = GroupEntry()
        return name { buffer in
            var found: UnsafeMutablePointer<GroupEntry>?
            let code = getgrgid_r(gid, &entry, &buffer, buffer.count, &found)
            return (code, found?.pointee.gr_name.map { String(cString: $0) })
        }
    }

    /// Calls one of getpwuid_r(3) and getgrgid_r(3) with memory that grows until the entry fits.
    private static func name(_ call: (inout [CChar]) -> (code: Int32, name: String?)) -> String? {
        var size = 1024
        while true {
            var buffer = [CChar](repeating: 0, count: size)
            let (code, name) = call(&buffer)
            guard code == ERANGE, size < maximumBytes else {
                if code != EINTR { return name }
                continue
            }
            size *= 2
        }
    }

    /// The longest entry that is read.
    private static let maximumBytes = 1 << 20

    /// Calls one of getpwnam_r(3) and getgrnam_r(3) with memory that grows until the entry fits.
    private static func lookUp(_ call: (inout [CChar]) -> (code: Int32, id: UInt32?)) -> LookupResult {
        var size = 1024
        while true {
            var buffer = [CChar](repeating: 0, count: size)
            let (code, id) = call(&buffer)
            if code == ERANGE, size < maximumBytes {
                size *= 2
            } else if code != EINTR {
                if let id { return .id(id) }
                // The manual page names these beside 0 for a name that is not there.
                return [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) ? .absent : .failure(code)
            }
        }
    }
}

/// `struct group`, whose name the function ``Accounts/group(_:)`` would hide.
private typealias GroupEntry = Glibc.group
