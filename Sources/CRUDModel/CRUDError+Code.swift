extension CRUDError {
    /// A code of the wire protocol. A code that this version does not know is kept.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// A frame was not valid JSON.
        public static let parseError = Code(rawValue: -32700)
        /// JSON, but not a JSON-RPC 2.0 request.
        public static let invalidRequest = Code(rawValue: -32600)
        /// No method has that name.
        public static let methodNotFound = Code(rawValue: -32601)
        /// A member of `params` is unknown, missing or of the wrong type; see ``Details/member``.
        public static let invalidParams = Code(rawValue: -32602)
        /// A bug in the daemon or in a plugin.
        public static let internalError = Code(rawValue: -32603)
        /// There is no record with that id.
        public static let recordNotFound = Code(rawValue: -32001)
        /// A record with that id exists already.
        public static let recordExists = Code(rawValue: -32002)
        /// The record has another revision; see ``Details/revision``.
        public static let revisionMismatch = Code(rawValue: -32003)
        /// The configuration has no rule for that collection.
        public static let collectionNotFound = Code(rawValue: -32004)
        /// The access rules do not allow it.
        public static let permissionDenied = Code(rawValue: -32005)
        /// The backend cannot do it, or the format cannot represent that item; see ``Details/path``.
        public static let unsupported = Code(rawValue: -32006)
        /// More than the configuration allows; see ``Details/limit`` and ``Details/maximum``.
        public static let limitExceeded = Code(rawValue: -32007)
        /// The backend or the daemon is down, draining or overloaded. Nothing was applied. A call that has no time left
        /// is ``timedOut``.
        public static let unavailable = Code(rawValue: -32008)
        /// The outcome of a write is unknown: it may or may not have been applied.
        public static let outcomeUnknown = Code(rawValue: -32009)
        /// A filter, sort or cursor is invalid; see ``Details/node``.
        public static let invalidQuery = Code(rawValue: -32010)
        /// Stored bytes cannot be decoded.
        public static let corrupt = Code(rawValue: -32011)
        /// The storage is full. Nothing was applied.
        public static let noSpace = Code(rawValue: -32012)
        /// The configuration is invalid; see ``Details/file``, ``Details/line`` and ``Details/column``.
        public static let invalidConfiguration = Code(rawValue: -32013)
        /// What has changed since that cursor is not remembered any more: begin again at the start.
        public static let cursorExpired = Code(rawValue: -32014)

        /// The time of a call was over. Nothing was applied: a write that may have been applied is ``outcomeUnknown``.
        ///
        /// The daemon never sends it; the client has it for its own deadlines.
        public static let timedOut = Code(rawValue: -32015)

        /// Every code of protocol version 1 that a daemon sends, with its name on the wire, in the order of the
        /// protocol's table.
        public static let all: [(code: Code, name: String)] = [
            (.parseError, "parse_error"), (.invalidRequest, "invalid_request"),
            (.methodNotFound, "method_not_found"), (.invalidParams, "invalid_params"),
            (.internalError, "internal_error"), (.recordNotFound, "record_not_found"),
            (.recordExists, "record_exists"), (.revisionMismatch, "revision_mismatch"),
            (.collectionNotFound, "collection_not_found"), (.permissionDenied, "permission_denied"),
            (.unsupported, "unsupported"), (.limitExceeded, "limit_exceeded"), (.unavailable, "unavailable"),
            (.outcomeUnknown, "outcome_unknown"), (.invalidQuery, "invalid_query"), (.corrupt, "corrupt"),
            (.noSpace, "no_space"), (.invalidConfiguration, "invalid_configuration"),
            (.cursorExpired, "cursor_expired"),
        ]

        /// The name on the wire, `data.name`; `error_CODE` for a code that this version does not know.
        public var name: String {
            self == .timedOut ? "timed_out" : Self.all.first { $0.code == self }?.name ?? "error_\(rawValue)"
        }

        /// Whether it is certain that nothing was applied.
        public var isRetryable: Bool { self == .unavailable || self == .noSpace || self == .timedOut }
    }
}
