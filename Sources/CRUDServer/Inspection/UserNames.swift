import Glibc

/// The names of users, each looked up once. The system may ask a directory on the network for them.
struct UserNames {
    private var names: [uid_t: String] = [:]

    /// The name of a user; empty if there is none.
    mutating func name(of uid: uid_t) -> String {
        if let name = names[uid] { return name }
        let name = Self.lookUp(uid)
        names[uid] = name
        return name
    }

    private static func lookUp(_ uid: uid_t) -> String {
        var entry = passwd()
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        var found: UnsafeMutablePointer<passwd>?
        guard getpwuid_r(uid, &entry, &buffer, buffer.count, &found) == 0, let name = found?.pointee.pw_name else {
            return ""
        }
        return String(cString: name)
    }
}
