/// Where a server may be: one element of the lists that a connection string gives. Empty: libpq's default.
struct ServerAddress: Hashable, CustomStringConvertible {
    let host: String
    let hostAddress: String
    let port: String

    /// For the administrator.
    var description: String {
        let name = host.isEmpty ? (hostAddress.isEmpty ? "the default host" : hostAddress) : host
        return port.isEmpty ? name : "\(name), port \(port)"
    }

    /// The addresses of comma-separated lists; a single port is that of all hosts.
    static func list(hosts: String, hostAddresses: String, ports: String) -> [ServerAddress] {
        func elements(_ list: String) -> [String] {
            list.isEmpty ? [] : list.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let (hosts, hostAddresses, ports) = (elements(hosts), elements(hostAddresses), elements(ports))
        return (0..<max(hosts.count, hostAddresses.count, 1)).map { index in
            func element(_ list: [String]) -> String { index < list.count ? list[index] : "" }
            return ServerAddress(
                host: element(hosts), hostAddress: element(hostAddresses),
                port: ports.count == 1 ? ports[0] : element(ports))
        }
    }
}
