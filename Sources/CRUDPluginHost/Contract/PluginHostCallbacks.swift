package import CRUDPluginABI
package import Logging

/// The host's side of the plugin contract: what a plugin calls, as `crudd_host`. It must live as long as the plugin's
/// storage is open.
package final class PluginHostCallbacks: Sendable {
    /// What the plugin is handed.
    package var pointer: UnsafePointer<crudd_host> { UnsafePointer(memory) }

    // The struct is written by `init`, and by `expect` while no plugin has it.
    private nonisolated(unsafe) let memory: UnsafeMutablePointer<crudd_host>

    private let backend: String
    private let logger: Logger
    private let state: @Sendable (_ isUp: Bool, _ reason: String) -> Void
    private let changed: @Sendable (_ name: [UInt8]) -> Void

    /// The most bytes of a line or a reason that are kept.
    private static let maximumTextBytes = 4096

    /// - Parameters:
    ///   - backend: the backend's name, with which each line of the log begins.
    ///   - state: called, on any thread, when the plugin has lost its storage or has it back.
    ///   - changed: called, on any thread, when more changes of a collection can be read, or it may have been made.
    package init(
        backend: String, logger: Logger,
        state: @escaping @Sendable (_ isUp: Bool, _ reason: String) -> Void = { _, _ in },
        changed: @escaping @Sendable (_ name: [UInt8]) -> Void = { _ in }
    ) {
        self.backend = backend
        self.logger = logger
        self.state = state
        self.changed = changed
        let host = UnsafeMutablePointer<crudd_host>.allocate(capacity: 1)
        memory = host
        host.initialize(to: .sized())
        host.pointee.context = Unmanaged.passUnretained(self).toOpaque()
        host.pointee.log = { context, level, message in
            PluginHostCallbacks.of(context)?.write(level, PluginHostCallbacks.text(message))
        }
        // It is the child's channel that a call's time-out belongs to, and a plugin in the daemon has none.
        host.pointee.progress = { _, _, _ in }
        host.pointee.state = { context, state, reason in
            PluginHostCallbacks.of(context)?.state(state == CRUDD_UP, PluginHostCallbacks.text(reason))
        }
        host.pointee.changed = { context, name in
            PluginHostCallbacks.of(context)?.changed(Array(name.buffer))
        }
    }

    deinit { memory.deallocate() }

    /// Says what the next opening has to find; to be called while no storage is open.
    package func expect(_ storage: ExpectedStorage) {
        memory.pointee.expected_storage = storage.rawValue
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> PluginHostCallbacks? {
        // The context is the object whose `init` has set it; its owner keeps it until the plugin has closed its
        // storage.
        context.map { unsafe Unmanaged<PluginHostCallbacks>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func text(_ bytes: crudd_bytes) -> String {
        String(decoding: bytes.buffer.prefix(maximumTextBytes), as: UTF8.self)
    }

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

/// A `crudd_host` that may be called from any thread, as the contract says.
struct HostReference: @unchecked Sendable {
    // @unchecked: the contract allows its functions to be called from any thread while the backend lives.
    private let host: crudd_host

    /// - Parameter host: its context lives as long as the backend.
    init(_ host: crudd_host) {
        self.host = host
    }

    /// - Parameter pointer: lives as long as the backend.
    init(_ pointer: UnsafePointer<crudd_host>) {
        self.init(crudd_host.read(pointer))
    }

    func log(_ level: crudd_log_level, _ line: String) {
        var line = line
        line.withUTF8 { host.log?(host.context, level, crudd_bytes($0)) }
    }

    func progress(done: UInt64, total: UInt64) {
        host.progress?(host.context, done, total)
    }

    func state(isUp: Bool, reason: String) {
        var reason = reason
        reason.withUTF8 { host.state?(host.context, isUp ? CRUDD_UP : CRUDD_DOWN, crudd_bytes($0)) }
    }

    func changed(_ name: [UInt8]) {
        name.withUnsafeBytes { host.changed?(host.context, crudd_bytes($0)) }
    }
}
