import Glibc

/// Users and groups as the system knows them, through the name service switch.
package enum Accounts {
    package enum LookupResult {
        case id(UInt32)
        case absent
        /// The name service failed with this `errno`.
        case failure(Int32)
    }

    package static func user(_ name: String) -> LookupResult {
        result(
            lookUp { buffer in
                var entry = passwd()
                // Null, or where the entry is.
                var found: UnsafeMutablePointer<passwd>?
                let code = getpwnam_r(name, &entry, &buffer, buffer.count, &found)
                return (code, found == nil ? nil : entry.pw_uid)
            })
    }

    static func group(_ name: String) -> LookupResult {
        result(
            lookUp { buffer in
                var entry = GroupEntry()
                // Null, or where the entry is.
                var found: UnsafeMutablePointer<GroupEntry>?
                let code = getgrnam_r(name, &entry, &buffer, buffer.count, &found)
                return (code, found == nil ? nil : entry.gr_gid)
            })
    }

    /// The name of a user; nil if there is none.
    package static func name(ofUser uid: UInt32) -> String? { user(uid)?.name }

    /// The name of a group; nil if there is none.
    package static func name(ofGroup gid: UInt32) -> String? {
        lookUp { buffer in
            var entry = GroupEntry()
            // Null, or where the entry is.
            var found: UnsafeMutablePointer<GroupEntry>?
            let code = getgrgid_r(gid, &entry, &buffer, buffer.count, &found)
            return (code, found.map { String(cString: $0.pointee.gr_name) })
        }.value
    }

    /// The groups of a user by the system's databases, the primary one first; none for a number without a name.
    package static func groups(of uid: UInt32) -> [UInt32] {
        guard let (name, primary) = user(uid) else { return [] }
        // Linux allows 65536 groups (NGROUPS_MAX).
        for capacity: Int32 in [64, 65536] {
            var groups = [gid_t](repeating: 0, count: Int(capacity))
            var count = capacity
            if getgrouplist(name, primary, &groups, &count) >= 0 { return Array(groups.prefix(Int(count))) }
        }
        return [primary]
    }

    private static func user(_ uid: UInt32) -> (name: String, group: UInt32)? {
        lookUp { buffer in
            var entry = passwd()
            // Null, or where the entry is.
            var found: UnsafeMutablePointer<passwd>?
            let code = getpwuid_r(uid, &entry, &buffer, buffer.count, &found)
            return (code, found.map { (String(cString: $0.pointee.pw_name), $0.pointee.pw_gid) })
        }.value
    }

    private static func result(_ found: (code: Int32, value: UInt32?)) -> LookupResult {
        if let id = found.value { return .id(id) }
        // The manual page names these beside 0 for a name that is not there.
        return [0, ENOENT, ESRCH, EBADF, EPERM].contains(found.code) ? .absent : .failure(found.code)
    }

    /// Calls one of getpwnam_r(3), getpwuid_r(3) and their like with memory that grows until the entry fits.
    private static func lookUp<Value>(
        _ call: (inout [CChar]) -> (code: Int32, value: Value?)
    ) -> (code: Int32, value: Value?) {
        let maximum = 1 << 20
        var size = 1024
        while true {
            var buffer = [CChar](repeating: 0, count: size)
            let outcome = call(&buffer)
            if outcome.code == ERANGE, size < maximum {
                size *= 2
            } else if outcome.code != EINTR {
                return outcome
            }
        }
    }
}

/// `struct group`, whose name the function ``Accounts/group(_:)`` would hide.
private typealias GroupEntry = Glibc.group
