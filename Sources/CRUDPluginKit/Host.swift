package import CRUDPluginABI

/// The host, as a plugin sees it. It lives as long as the backend and may be used from any thread.
// The contract says that the functions may be called from any thread while the backend lives.
public struct Host: @unchecked Sendable {
    /// A function that an older host lacks is nil.
    private let host: crudd_host

    package init(_ host: UnsafePointer<crudd_host>) {
        self.host = fullStruct(host)
    }

    /// Whether the storage must be there: a backend that is opened makes none.
    public var expectsStorage: Bool { host.expected_storage != 0 }

    /// Refuses what is not the storage that the host expects, as it has collections there. To be called when a backend
    /// is opened, before anything is made or changed.
    ///
    /// - Parameters:
    ///   - identity: of the storage that has been found; 0: it has none yet; nil: there is no storage.
    ///   - place: where that is, for the administrator.
    /// - Throws: ``StorageFailure`` with `notFound`.
    public func requireStorage(_ identity: UInt64?, in place: String) throws(StorageFailure) {
        guard expectsStorage, identity != host.expected_storage else { return }
        // CRUDD_ANY_STORAGE
        if identity != nil, host.expected_storage == .max { return }
        switch identity {
        case nil: throw StorageFailure(.notFound, "there is no storage in \(place)")
        case 0: throw StorageFailure(.notFound, "the storage in \(place) has no identity")
        default: throw StorageFailure(.notFound, "there is another storage in \(place)")
        }
    }

    /// Writes a line for the administrator; never the content of a record.
    public func log(_ level: LogLevel, _ message: String) {
        var message = message
        message.withUTF8 { host.log?(host.context, level.raw, crudd_bytes(UnsafeRawBufferPointer($0))) }
    }

    /// The call in progress advances, which postpones its timeout.
    ///
    /// - Parameter total: 0 where it is not known.
    public func progress(_ done: UInt64, of total: UInt64 = 0) {
        host.progress?(host.context, done, total)
    }

    /// The storage was lost, or is back. While it is down the host makes no calls but ``StorageBackend/idle(_:)``,
    /// about once a second, in which the backend reconnects.
    ///
    /// ``State/up`` of storage that is up leaves a notice for the administrator, such as that the disk is full, until
    /// the next report; an empty one takes it back. While there is one ``StorageBackend/idle(_:)`` is called every five
    /// seconds.
    ///
    /// - Parameter reason: for the administrator.
    public func state(_ state: State, _ reason: String) {
        var reason = reason
        reason.withUTF8 { host.state?(host.context, state.raw, crudd_bytes(UnsafeRawBufferPointer($0))) }
    }

    /// More changes of a collection can be read, or it may have been made, whichever host has done that: requests that
    /// wait for one look again. A hint, with ``Capabilities/shared``; what counts is
    /// ``StorageReader/readHistory(of:_:)``.
    ///
    /// - Parameter name: of the collection.
    public func changed(_ name: [UInt8]) {
        name.withUnsafeBytes { host.changed?(host.context, crudd_bytes($0)) }
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

    /// Whether the storage can be used.
    public enum State: Sendable {
        case up, down

        var raw: crudd_state {
            switch self {
            case .up: CRUDD_UP
            case .down: CRUDD_DOWN
            }
        }
    }
}
