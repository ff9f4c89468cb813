import CRUDPluginKit
import Synchronization

/// Logs what is in our directories and not ours, once each; it is left alone.
final class ForeignFiles: Sendable {
    /// How many are named in the log; they are remembered to be named once.
    private static let maximumNamed = 1000

    private let host: Host
    private let named = Mutex<Set<String>>([])

    init(host: Host) {
        self.host = host
    }

    func report(_ name: some Sequence<UInt8>, in directory: Directory) {
        // Whoever has made the file has chosen its name.
        let printable = name.map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0 }
        let path = "\(directory.path)/\(String(decoding: printable, as: UTF8.self))"
        let message: String? = named.withLock { named in
            guard named.count <= Self.maximumNamed, named.insert(path).inserted else { return nil }
            return named.count <= Self.maximumNamed
                ? "\(path) is not a file of crudd and is ignored"
                : "there are more than \(Self.maximumNamed) files that are not crudd's; the others are not named"
        }
        if let message { host.log(.warning, message) }
    }
}
