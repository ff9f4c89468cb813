import CRUDPluginABI
import Logging

/// What a plugin sees of the host: a way into its log. Lives as long as the backend's storage is open.
final class PluginLog {
    /// What the plugin is handed.
    let pointer: UnsafeMutablePointer<crudd_host>

    private let backend: String
    private let logger: Logger

    init(backend: String, logger: Logger) {
        self.backend = backend
        self.logger = logger
        pointer = .allocate(capacity: 1)
        var host = crudd_host()
        host.struct_size = UInt32(MemoryLayout<crudd_host>.size)
        host.log = { context, level, message in
            guard let context else { return }
            // `context` is the log below, which its owner keeps until the plugin has closed its storage.
            Unmanaged<PluginLog>.fromOpaque(context).takeUnretainedValue()
                .write(level, String(decoding: message.buffer.prefix(4096), as: UTF8.self))
        }
        pointer.initialize(to: host)
        pointer.pointee.context = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit { pointer.deallocate() }

    private func write(_ level: crudd_log_level, _ message: String) {
        let level: Logger.Level =
            switch level {
            case CRUDD_LOG_DEBUG: .debug
            case CRUDD_LOG_INFO: .info
            case CRUDD_LOG_WARNING: .warning
            default: .error
            }
        logger.log(level: level, "backend \(backend): \(message)")
    }
}
