import CRUDPluginABI

/// The host, as a plugin sees it. It lives as long as the backend and may be used from any thread.
// The contract says that the struct and its functions may be used from any thread while the backend lives.
public struct Host: @unchecked Sendable {
    private let host: UnsafePointer<crudd_host>

    init(_ host: UnsafePointer<crudd_host>) {
        self.host = host
    }

    /// Writes a line for the administrator; never the content of a record.
    public func log(_ level: LogLevel, _ message: String) {
        var message = message
        message.withUTF8 { text in
            host.pointee.log(host.pointee.context, level.raw, crudd_bytes(data: text.baseAddress, size: text.count))
        }
    }

    public enum LogLevel: Sendable {
        case debug, info, warning, error

        var raw: crudd_log_level {
            switch self {
            case .debug: CRUDD_LOG_DEBUG
            case .info: CRUDD_LOG_INFO
            case .warning: CRUDD_LOG_WARNING
            case .error: CRUDD_LOG_ERROR
            }
        }
    }
}
