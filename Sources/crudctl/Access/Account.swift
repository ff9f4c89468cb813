import Glibc

/// Users and groups as this machine calls them.
enum Account {
    /// Such as `user alice (1000)`.
    static func user(_ uid: Int) -> String { "user \(numbered(uid, name(ofUser: uid)))" }

    /// Such as `shop (1001)`.
    static func group(_ gid: Int) -> String { numbered(gid, name(ofGroup: gid)) }

    private static func numbered(_ number: Int, _ name: String?) -> String {
        name.map { "\($0) (\(number))" } ?? String(number)
    }

    private static func name(ofUser uid: Int) -> String? {
        guard let uid = uid_t(exactly: uid), let entry = unsafe getpwuid(uid) else { return nil }
        // No other call of its kind is made meanwhile: the program has one thread for its commands.
        return unsafe String(cString: entry.pointee.pw_name)
    }

    private static func name(ofGroup gid: Int) -> String? {
        guard let gid = gid_t(exactly: gid), let entry = unsafe getgrgid(gid) else { return nil }
        // As above.
        return unsafe String(cString: entry.pointee.gr_name)
    }
}
