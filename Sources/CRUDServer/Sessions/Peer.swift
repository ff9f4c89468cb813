import CLinux
import Glibc

/// The identity of a session's peer, as the kernel gives it (unix(7), SO_PEERCRED and SO_PEERGROUPS).
struct Peer: Sendable {
    let uid: uid_t
    /// The primary group and all others.
    let groups: [gid_t]

    init(uid: uid_t, groups: [gid_t]) {
        self.uid = uid
        self.groups = groups
    }

    /// - Returns: nil if the kernel does not tell.
    init?(of descriptor: CInt) {
        var processID = pid_t()
        var uid = uid_t()
        var gid = gid_t()
        guard clinux_peer_credentials(descriptor, &processID, &uid, &gid) == 0 else { return nil }
        self.uid = uid
        // Linux allows 65536 groups (NGROUPS_MAX); most users have a handful.
        for capacity in [64, 65536] {
            var groups = [gid_t](repeating: 0, count: capacity)
            let count = clinux_peer_groups(descriptor, &groups, CInt(capacity))
            if count >= 0 {
                self.groups = [gid] + groups.prefix(Int(count))
                return
            }
        }
        return nil
    }
}
