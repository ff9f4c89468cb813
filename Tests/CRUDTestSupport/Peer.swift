package import Glibc

/// The user of a connection, if it is not the one that runs the tests.
package struct Peer: Sendable {
    package var user: uid_t
    package var group: gid_t
    package var supplementaryGroups: [gid_t]

    package init(user: uid_t, group: gid_t, supplementaryGroups: [gid_t] = []) {
        self.user = user
        self.group = group
        self.supplementaryGroups = supplementaryGroups
    }

    /// This process.
    package static var own: Peer { Peer(user: geteuid(), group: getegid()) }

    /// The name of its user; empty where the system has none.
    package static var ownName: String { getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "" }

    /// Whether this process may become another user.
    package static var canImpersonate: Bool { geteuid() == 0 }

    /// setpriv(1) with the arguments that make a program run as this peer.
    package var command: (path: String, arguments: [String]) {
        let groups = supplementaryGroups.map(String.init).joined(separator: ",")
        return (
            "setpriv",
            ["--reuid=\(user)", "--regid=\(group)", groups.isEmpty ? "--clear-groups" : "--groups=\(groups)", "--"]
        )
    }

    /// Connects `descriptor` to `path` as this peer. The kernel records who has called connect(2), so that a
    /// short-lived process of the peer can connect for this process.
    func connect(_ descriptor: Descriptor, to path: String) throws {
        let program = "open(my $s, '+<&=', 3) or die $!; connect($s, sockaddr_un($ARGV[0])) or die $!"
        let outcome = try Command.run(
            command.path, command.arguments + ["perl", "-MSocket", "-e", program, path],
            descriptors: [(descriptor, 3)])
        guard outcome.status == .exited(0) else { throw Failure("connect \(path) as \(user): \(outcome.errors)") }
    }
}
