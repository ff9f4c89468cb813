import CRUDPluginABI
import CRUDPluginHost
import Glibc

/// The host as the plugin sees it: lines for the log go to standard error, marked with their levels, and what concerns
/// the daemon goes over the channels. Lives as long as the process.
final class DaemonReference: Sendable {
    /// What the plugin is handed.
    // The struct is written by `init`, and once before the plugin gets it.
    nonisolated(unsafe) private let memory: UnsafeMutablePointer<crudd_host>
    private let channels: [ChannelSender]

    /// - Parameter channels: the first carries what concerns the storage as a whole.
    init(_ channels: [ChannelSender]) {
        self.channels = channels
        let host = UnsafeMutablePointer<crudd_host>.allocate(capacity: 1)
        host.initialize(to: .sized())
        memory = host
        host.pointee.context = Unmanaged.passUnretained(self).toOpaque()
        host.pointee.log = { _, level, message in DaemonReference.log(level, message.buffer) }
        host.pointee.progress = { context, done, total in
            DaemonReference.of(context)?.progress(done: done, total: total)
        }
        host.pointee.state = { context, state, reason in
            DaemonReference.of(context)?.channels.first?.sendState(isUp: state == CRUDD_UP, reason: reason.buffer)
        }
        host.pointee.changed = { context, name in
            DaemonReference.of(context)?.channels.first?.sendChanged(name.buffer)
        }
    }

    /// What the plugin is handed, once, when its storage is opened.
    func host(expectingStorage identity: UInt64) -> UnsafePointer<crudd_host> {
        memory.pointee.expected_storage = identity
        return UnsafePointer(memory)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> DaemonReference? {
        // The context is the object whose `init` has set it, which lives as long as the process.
        context.map { unsafe Unmanaged<DaemonReference>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func log(_ level: crudd_log_level, _ message: UnsafeRawBufferPointer) {
        let mark =
            switch level {
            case CRUDD_LOG_DEBUG: "<7>"
            case CRUDD_LOG_INFO: "<6>"
            case CRUDD_LOG_WARNING: "<4>"
            default: "<3>"
            }
        // One write, so that lines of several threads do not mix; a line break would make a second line of it.
        let line = Array(mark.utf8) + message.map { $0 == 0x0A ? 0x20 : $0 } + [0x0A]
        _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// The call that advances is the one that this thread makes. A thread of the plugin's own may work for any of them.
    private func progress(done: UInt64, total: UInt64) {
        let own = channels.first { $0.isThisThreads }
        for channel in own.map({ [$0] }) ?? channels { channel.sendProgress(done: done, total: total) }
    }
}
