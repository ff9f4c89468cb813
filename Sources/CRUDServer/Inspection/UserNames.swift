import CRUDConfiguration
import Glibc

/// The names of users, each looked up once. The system may ask a directory on the network for them.
struct UserNames {
    private var names: [uid_t: String] = [:]

    /// The name of a user; empty if there is none.
    mutating func name(of uid: uid_t) -> String {
        if let name = names[uid] { return name }
        let name = Accounts.name(ofUser: uid) ?? ""
        names[uid] = name
        return name
    }
}
