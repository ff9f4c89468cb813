/// Why a call failed: a code to decide on, a message for people, and the details that the protocol defines for the
/// code.
///
/// Codes and names are those of the wire protocol (PROTOCOL.md, "Errors"); their meaning never changes. Compare
/// ``code``, never ``message``.
public struct CRUDError: Error, Sendable {
    /// What happened; the part to decide on.
    public var code: Code
    /// For people, in English; its wording may change.
    public var message: String
    /// Facts that belong to the code, such as the name of the invalid member.
    public var details: Details
    /// The underlying error, if there is one (of a connection, for example). It is not sent on the wire.
    public var cause: (any Error)?
    /// Whether the message names the collection, and the record if there is one.
    package var namesSubject = false
    /// Whether the message says what the cause says.
    package var tellsCause = false

    public init(_ code: Code, _ message: String, details: Details = Details(), cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.details = details
        self.cause = cause
    }

    /// `invalid_params` for a member of `params`.
    ///
    /// - Parameters:
    ///   - member: its name.
    ///   - reason: the end of a sentence that begins with the name.
    package static func invalid(_ member: String, _ reason: String) -> CRUDError {
        CRUDError(.invalidParams, "`\(member)` \(reason)", details: Details(member: member))
    }

    /// This error, of the element of `operations` at `index`.
    package func at(_ index: Int) -> CRUDError {
        var error = self
        error.details.index = index
        return error
    }

    /// Whether it is certain that nothing was applied, so that the same call may be made again.
    public var isRetryable: Bool { code.isRetryable }

    /// Facts about an error; those that its code does not define are nil.
    public struct Details: Sendable, Equatable {
        /// `invalid_params`: the member that is unknown, missing or of the wrong type.
        public var member: String?
        /// `limit_exceeded`: the limit's name in the configuration.
        public var limit: String?
        /// `limit_exceeded`: the limit's value.
        public var maximum: Int?
        /// `revision_mismatch`: the record's revision; nil if there is no record.
        public var revision: String?
        /// The element of `operations` that failed, from 0.
        public var index: Int?
        /// `unsupported`: the path of the value that the format cannot represent.
        public var path: String?
        /// `invalid_query`: the invalid node, as JSON text.
        public var node: String?
        /// `invalid_configuration`: the path of the file.
        public var file: String?
        /// `invalid_configuration`: from 1.
        public var line: Int?
        /// `invalid_configuration`: from 1; `invalid_query` of CQL2's text encoding: the code point, from 1.
        public var column: Int?
        /// `outcome_unknown` of `record.deleteMatching`: how many records are known to have been deleted.
        public var deleted: Int?
        /// `invalid_configuration`: every error of the file, where there are several.
        public var errors: [String]?

        public init(
            member: String? = nil, limit: String? = nil, maximum: Int? = nil, revision: String? = nil,
            index: Int? = nil, path: String? = nil, node: String? = nil, file: String? = nil, line: Int? = nil,
            column: Int? = nil, deleted: Int? = nil, errors: [String]? = nil
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
            self.deleted = deleted
            self.errors = errors
        }
    }
}

extension CRUDError: CustomStringConvertible {
    /// `record_not_found: there is no record "x"`, followed by the cause.
    public var description: String { "\(code.name): \(text)" }

    /// The message, followed by the cause if it does not tell that.
    package var text: String {
        guard let cause, !tellsCause else { return message }
        return "\(message) (\(cause))"
    }
}

extension CRUDError {
    /// An evaluation has been stopped: its result is not wanted any more, or it takes longer than it may here. It is
    /// not sent to clients.
    package static let stopped = CRUDError(.timedOut, "the work was stopped")
}
