import Glibc
import Synchronization

/// Network namespaces, each that of a machine with two links: one to its peers, and one to its clients, of which the
/// tests are one; the tests reach the peers' network, too. Only root can make them.
package final class MachineNetwork: Sendable {
    package enum Link: Int, CaseIterable, Sendable {
        case peers
        case clients
    }

    private let machines: Int
    /// What the names of namespaces and of links of this network begin with.
    private let prefix: String
    /// The third number of its addresses, and the one after it.
    private let subnet: Int
    private static let count = Atomic(0)

    /// - Parameter machines: how many there are.
    package init(machines: Int) throws {
        let number = Self.count.add(1, ordering: .relaxed).newValue
        self.machines = machines
        prefix = "cr\(getpid() % 100_000)n\(number)"
        // Of 198.18.0.0/15, which is for tests of networks (RFC 2544).
        subnet = (Int(getpid()) * 16 + number * 2) % 256
        do {
            try run(creation)
        } catch {
            try? run(removal)
            throw error
        }
    }

    deinit { try? run(removal) }

    package func address(_ machine: Int, _ link: Link = .clients) -> String { "\(network(link)).\(machine + 1)" }

    /// The file of a machine's network namespace.
    package func namespace(_ machine: Int) -> String { "/run/netns/\(name(machine))" }

    /// Takes links of a machine down: what is sent is lost, and no connection is told.
    package func cut(_ machine: Int, from links: [Link]) throws { try set(machine, links, "down") }

    /// Takes links of a machine up.
    package func heal(_ machine: Int, _ links: [Link] = Link.allCases) throws { try set(machine, links, "up") }

    private func set(_ machine: Int, _ links: [Link], _ state: String) throws {
        try run(links.map { "ip -n \(hub) link set \(port(machine, $0)) \(state)" })
    }

    // MARK: Names

    private func network(_ link: Link) -> String { "198.18.\(subnet + link.rawValue)" }

    private func name(_ machine: Int) -> String { "\(prefix)m\(machine)" }

    /// The namespace of the bridges.
    private var hub: String { "\(prefix)hub" }

    private func port(_ machine: Int, _ link: Link) -> String { "p\(machine)\(link)" }

    /// The tests' own end of a link.
    private func own(_ link: Link) -> String { "\(prefix)\(link.rawValue)" }

    // MARK: Commands

    private var creation: [String] {
        var commands = ["ip netns add \(hub)"]
        for machine in 0..<machines {
            commands += ["ip netns add \(name(machine))", "ip -n \(name(machine)) link set lo up"]
        }
        for link in Link.allCases {
            commands += [
                "ip -n \(hub) link add \(link) type bridge", "ip -n \(hub) link set \(link) up",
                "ip link add \(own(link)) type veth peer name own\(link) netns \(hub)",
                "ip -n \(hub) link set own\(link) master \(link) up",
                "ip address add \(network(link)).254/24 dev \(own(link))", "ip link set \(own(link)) up",
            ]
            for machine in 0..<machines {
                let (name, port) = (name(machine), port(machine, link))
                commands += [
                    "ip -n \(name) link add \(link) type veth peer name \(port) netns \(hub)",
                    "ip -n \(hub) link set \(port) master \(link) up",
                    "ip -n \(name) address add \(address(machine, link))/24 dev \(link)",
                    "ip -n \(name) link set \(link) up",
                ]
            }
        }
        return commands
    }

    /// With its end in the namespace of the bridges a link goes, too.
    private var removal: [String] {
        ([hub] + (0..<machines).map(name)).map { "ip netns delete \($0) || true" }
            + Link.allCases.map { "ip link delete \(own($0)) 2> /dev/null || true" }
    }

    private func run(_ commands: [String]) throws {
        let outcome = try Command.run("sh", ["-euc", commands.joined(separator: "\n")])
        guard outcome.status == .exited(0) else { throw Failure("network: \(outcome.errors)") }
    }
}
