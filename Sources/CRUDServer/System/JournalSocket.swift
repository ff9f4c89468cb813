import CLinux
import Glibc

/// The socket at which systemd's journal takes entries with fields
/// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/).
struct JournalSocket {
    private let descriptor: CInt
    private static let path = "/run/systemd/journal/socket"

    /// - Returns: nil unless stderr is connected to the journal (systemd.exec(5), `$JOURNAL_STREAM`).
    init?() {
        guard let stream = getenv("JOURNAL_STREAM").map({ String(cString: $0) }) else { return nil }
        var status = stat()
        guard fstat(STDERR_FILENO, &status) == 0, stream == "\(status.st_dev):\(status.st_ino)" else { return nil }
        descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
    }

    /// Sends an entry; false if the journal does not take it.
    ///
    /// - Parameters:
    ///   - message: one line.
    ///   - fields: their names get the prefix `CRUDD_`.
    func send(_ message: String, priority: Int, _ fields: [(name: String, value: String)]) -> Bool {
        var entry = "MESSAGE=\(message)\nPRIORITY=\(priority)\nSYSLOG_IDENTIFIER=crudd\nSYSLOG_PID=\(getpid())\n"
        for (name, value) in fields {
            // A line break would begin another field.
            let line = String(value.map { $0.isNewline ? " " : $0 })
            entry += "CRUDD_\(name.uppercased())=\(line)\n"
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Self.path.utf8) }
        let bytes = Array(entry.utf8)
        let sent = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0,
                    socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return sent == bytes.count
    }
}
