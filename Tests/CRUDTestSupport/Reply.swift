/// One reply, checked for the required form.
package struct Reply: CustomStringConvertible {
    package let json: JSON
    /// The reply as it was received.
    package let id: JSON
    /// Nil if there is an error.
    package let result: JSON?
    /// Nil if there is a result.
    package let error: ReplyError?

    package var description: String { json.text }

    package init(_ json: JSON) throws {
        self.json = json
        guard let members = json.members else { throw Failure("not an object: \(json.text)") }
        let names = members.map(\.name).sorted()
        guard names == ["id", "jsonrpc", "result"] || names == ["error", "id", "jsonrpc"],
            json["jsonrpc"]?.string == "2.0", let id = json["id"]
        else { throw Failure("not a JSON-RPC 2.0 response: \(json.text)") }
        self.id = id
        result = json["result"]
        error = try json["error"].map(ReplyError.init)
    }
}

/// The `error` member of a reply, checked against the table of codes.
package struct ReplyError {
    package let code: Int
    package let name: String
    package let message: String
    package let isRetryable: Bool
    package let details: JSON?

    init(_ json: JSON) throws {
        guard let message = json["message"]?.string, let code = json["code"]?.integer,
            let name = json["data"]?["name"]?.string, let isRetryable = json["data"]?["retryable"]?.boolean
        else { throw Failure("not an error of the protocol: \(json.text)") }
        guard Self.names[code] == name else { throw Failure("no such code and name: \(json.text)") }
        guard isRetryable == (name == "unavailable" || name == "no_space") else {
            throw Failure("retryable is wrong: \(json.text)")
        }
        self.code = code
        self.message = message
        self.name = name
        self.isRetryable = isRetryable
        details = json["data"]?["details"]
    }

    /// The protocol's table of codes.
    private static let names = [
        -32700: "parse_error", -32600: "invalid_request", -32601: "method_not_found", -32602: "invalid_params",
        -32603: "internal_error", -32001: "record_not_found", -32002: "record_exists", -32003: "revision_mismatch",
        -32004: "collection_not_found", -32005: "permission_denied", -32006: "unsupported", -32007: "limit_exceeded",
        -32008: "unavailable", -32009: "outcome_unknown", -32010: "invalid_query", -32011: "corrupt",
        -32012: "no_space", -32013: "invalid_configuration", -32014: "cursor_expired",
    ]
}
