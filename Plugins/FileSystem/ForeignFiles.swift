import CRUDPluginKit
import Synchronization

/// Logs each file of our directories that is not ours or cannot be read, once; it is left alone.
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
        report("\(directory.path)/\(String(decoding: printable, as: UTF8.self)) is not a file of crudd and is ignored")
    }

    /// Logs why a record cannot be read.
    func report(_ failure: StorageFailure) {
        report(failure.message)
    }

    private func report(_ message: String) {
        let text: String? = named.withLock { named in
            guard named.count <= Self.maximumNamed, named.insert(message).inserted else { return nil }
            return named.count <= Self.maximumNamed
                ? message : "there are more than \(Self.maximumNamed) such files; the others are not named"
        }
        if let text { host.log(.warning, text) }
    }
}
