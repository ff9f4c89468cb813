import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDThreads
import Glibc
import Synchronization

/// Writes a backup of one backend, on a thread of its own.
final class BackupTask: Sendable {
    private let backend: Backend
    private let directory: String
    private let timeout: Duration
    private let cancellation: BackupCancellation
    private let completion: DelegatedCalls.Completion

    /// So much is written before the disk has to have it: what waits to be written would slow down other writes, and
    /// the end.
    private static let bytesBetweenSyncs = 16 << 20
    /// What is added to the nice value: threads that serve have ten times as much of a processor.
    private static let niceness: Int32 = 10

    /// - Parameters:
    ///   - directory: the path of a directory, as the caller gave it.
    ///   - timeout: how long the backend may take to begin.
    ///   - cancellation: of the caller.
    ///   - completion: gets the result.
    init(
        of backend: Backend, in directory: String, within timeout: Duration, _ cancellation: BackupCancellation,
        _ completion: @escaping DelegatedCalls.Completion
    ) {
        self.backend = backend
        self.directory = directory
        self.timeout = timeout
        self.cancellation = cancellation
        self.completion = completion
    }

    func start() {
        do throws(ThreadFailure) {
            try Thread(named: "backup") { [self] in
                Thread.lowerPriority(by: Self.niceness)
                completion(Result { () throws(CRUDError) in try run() })
            }.detach()
        } catch {
            completion(.failure(CRUDError(.unavailable, "the system has no thread for a backup (errno \(error.code))")))
        }
    }

    private func run() throws(CRUDError) -> [UInt8] {
        let began = MonotonicTime.now
        let moment = Self.now
        let directory = try BackupDirectory(directory)
        BackupFile.removeRemains(of: BackupName.prefix(of: backend.name), in: directory)
        let name = BackupName.name(of: backend.name, plugin: backend.plugin.name, at: moment)
        var file = try BackupFile(named: name, in: directory)
        let backup = try backend.beginBackup(to: file.temporaryPath, within: timeout)
        defer {
            backup.end()
            backend.backup = nil
        }
        var status = Backend.BackupStatus(path: file.path)
        var syncedBytes = 0
        while true {
            backend.backup = status
            let progress = try backend.advance(backup, within: timeout)
            (status.bytes, status.totalBytes) = (progress.bytes, progress.totalBytes)
            if progress.isComplete { break }
            if let reason = cancellation.reason { throw CRUDError(.unavailable, "the backup was cancelled: \(reason)") }
            guard status.bytes - syncedBytes >= Self.bytesBetweenSyncs else { continue }
            try file.sync()
            syncedBytes = status.bytes
        }
        backend.backup = status
        // The plugin may write until it has ended the backup.
        backup.end()
        try file.finish()
        var writer = JSONWriter()
        writer.object { result in
            result.member("path", file.path)
            result.member("bytes", file.byteCount)
            result.member("at", moment * 1000)
            result.key("seconds")
            result.raw("\((MonotonicTime.now - began).seconds)".utf8)
        }
        return writer.bytes
    }

    /// Seconds since 1970-01-01 UTC.
    private static var now: Int { time(nil) }
}

/// Whether a backup is still wanted.
final class BackupCancellation: Sendable {
    private let cancelled = Mutex<String?>(nil)

    func cancel(_ reason: String) { cancelled.withLock { $0 = $0 ?? reason } }

    /// Why it is not; nil: it is.
    var reason: String? { cancelled.withLock { $0 } }
}

/// How a backup's file is called.
enum BackupName {
    private static let maximumPart = 64

    /// Such as `main-20260131T235959Z.sqlite`.
    ///
    /// - Parameters:
    ///   - backend: its name; what is neither a letter, a digit nor one of `._-` becomes `_`.
    ///   - plugin: its name or path in the configuration.
    ///   - seconds: since 1970-01-01 UTC.
    static func name(of backend: String, plugin: String, at seconds: Int) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(parts.tm_year + 1900)\(padded(parts.tm_mon + 1))\(padded(parts.tm_mday))"
        let clock = "\(padded(parts.tm_hour))\(padded(parts.tm_min))\(padded(parts.tm_sec))"
        let kind = plugin.split(separator: "/").last.map(String.init) ?? ""
        return "\(prefix(of: backend))\(date)T\(clock)Z.\(part(kind))"
    }

    /// How the names of all backups of a backend begin.
    static func prefix(of backend: String) -> String { "\(part(backend))-" }

    private static func part(_ text: String) -> String {
        let bytes = text.utf8.prefix(maximumPart).enumerated().map { position, byte in
            let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            let isPlain = isLetter || isDigit || "_-".utf8.contains(byte)
            return isPlain || position > 0 && byte == UInt8(ascii: ".") ? byte : UInt8(ascii: "_")
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
