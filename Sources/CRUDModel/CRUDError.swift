/// What went wrong with a call: a code to decide on, a message for people, and what the code's row of the protocol
/// promises beside it.
///
/// The codes and names are those of section 5 of the wire protocol; they never change meaning. Compare
/// ``code``, never ``message``.
public struct CRUDError: Error, Sendable {
    /// What happened. Decide on this.
    public var code: Code
    /// For people, in English; its wording may change.
    public var message: String
    /// Facts that belong to the code, such as the member that was wrong.
    public var details: Details
    /// The error beneath this one, where there is one (a connection's, say). It does not travel on the wire.
    public var cause: (any Error)?

    public init(_ code: Code, _ message: String, details: Details = Details(), cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.details = details
        self.cause = cause
    }

    /// Whether the protocol promises that nothing was applied, so that the same call may be made again.
    public var isRetryable: Bool { code.isRetryable }

    /// Facts beside an error's code; those that the code does not speak of are nil.
    public struct Details: Sendable, Equatable {
        /// `invalid_params`: the member that is unknown, missing or of the wrong type.
        public var member: String?
        /// `limit_exceeded`: the limit's name in the configuration.
        public var limit: String?
        /// `limit_exceeded`: the most that the limit allows.
        public var maximum: Int?
        /// `revision_mismatch`: the revision that the record has; nil where there is no record.
        public var revision: String?
        /// The element of `operations` that failed, from 0.
        public var index: Int?
        /// `unsupported`: the path in the item that the format cannot hold.
        public var path: String?
        /// `invalid_query`: the offending node, as JSON text.
        public var node: String?
        /// `invalid_configuration`: where.
        public var file: String?
        /// `invalid_configuration`: from 1.
        public var line: Int?
        /// `invalid_configuration`: from 1; `invalid_query` of CQL2's text encoding: the code point, from 1.
        public var column: Int?

        public init(
            member: String? = nil, limit: String? = nil, maximum: Int? = nil, revision: String? = nil,
            index: Int? = nil, path: String? = nil, node: String? = nil, file: String? = nil, line: Int? = nil,
            column: Int? = nil
        ) {
            self.member = member
            self.limit = limit
            self.maximum = maximum
            self.revision = revision
            self.index = index
            self.path = path
            self.node = node
            self.file = file
            self.line = line
            self.column = column
        }
    }
}

extension CRUDError: CustomStringConvertible {
    /// `record_not_found: there is no record "x"`, followed by the cause.
    public var description: String {
        "\(code.name): \(message)" + (cause.map { " (\($0))" } ?? "")
    }
}
