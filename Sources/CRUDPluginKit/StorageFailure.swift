public import CRUDPluginABI

/// Why a plugin could not do what the host asked.
public struct StorageFailure: Error, Sendable {
    /// What the host decides on.
    public var status: Status
    /// For the administrator, in English, at most 511 bytes of it; never the content of a record.
    public var message: String
    /// A JSON pointer (RFC 6901) to the option that is wrong; empty for failures of other kinds.
    public var pointer: String

    public init(_ status: Status, _ message: String, pointer: String = "") {
        self.status = status
        self.message = message
        self.pointer = pointer
    }

    /// The statuses of the plugin contract.
    public struct Status: RawRepresentable, Hashable, Sendable {
        public let rawValue: crudd_status

        public init(rawValue: crudd_status) {
            self.rawValue = rawValue
        }

        /// No such record, no such collection.
        public static let notFound = Status(rawValue: crudd_status(CRUDD_NOT_FOUND))
        /// There is a record where there must be none.
        public static let exists = Status(rawValue: crudd_status(CRUDD_EXISTS))
        /// Not now, and nothing was applied: busy, locked, read-only, unreachable.
        public static let unavailable = Status(rawValue: crudd_status(CRUDD_UNAVAILABLE))
        /// A write may or may not have been applied.
        public static let outcomeUnknown = Status(rawValue: crudd_status(CRUDD_OUTCOME_UNKNOWN))
        /// Storage is full, and nothing was applied.
        public static let noSpace = Status(rawValue: crudd_status(CRUDD_NO_SPACE))
        /// Stored bytes cannot be decoded.
        public static let corrupt = Status(rawValue: crudd_status(CRUDD_CORRUPT))
        /// The plugin lacks this capability.
        public static let unsupported = Status(rawValue: crudd_status(CRUDD_UNSUPPORTED))
        /// The options can never work.
        public static let invalidOptions = Status(rawValue: crudd_status(CRUDD_INVALID_OPTIONS))
        /// Anything else; a bug.
        public static let `internal` = Status(rawValue: crudd_status(CRUDD_INTERNAL))
        /// ``CallContext/isInterrupted`` was true, and nothing was applied.
        public static let interrupted = Status(rawValue: crudd_status(CRUDD_INTERRUPTED))
    }

    /// ``CallContext/isInterrupted`` was true.
    public static var interrupted: StorageFailure { StorageFailure(.interrupted, "interrupted") }
}

extension StorageFailure {
    /// Writes message and pointer where the host reads them, and returns the status.
    func report(to failure: UnsafeMutablePointer<crudd_failure>?) -> crudd_status {
        if let failure {
            // The host owns the struct until the call returns, and each text is cut to the size of its array.
            unsafe withUnsafeMutableBytes(of: &failure.pointee.message) { unsafe $0.store(text: message) }
            unsafe withUnsafeMutableBytes(of: &failure.pointee.pointer) { unsafe $0.store(text: pointer) }
        }
        return status.rawValue
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Stores `text` with a terminator, cut at the end of a code point where it does not fit.
    func store(text: String) {
        var end = 0
        for scalar in text.unicodeScalars {
            if end + scalar.utf8.count >= count { break }
            for byte in scalar.utf8 {
                self[end] = byte
                end += 1
            }
        }
        self[end] = 0
    }
}
