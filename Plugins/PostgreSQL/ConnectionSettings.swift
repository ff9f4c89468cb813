import Glibc

/// What connections to the server are opened with.
struct ConnectionSettings: Sendable {
    /// The file in the directory of systemd's credentials that holds the password.
    static let credential = "postgresql.password"

    private let parameters: [String: String]
    let schema: String

    /// Lost servers are noticed within seconds, and one that only reads is not taken for the primary.
    private static let defaults = [
        "connect_timeout": "3", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "2",
        "tcp_user_timeout": "6000", "target_session_attrs": "read-write", "application_name": "crudd",
    ]

    init(_ options: PostgreSQLOptions) {
        var parameters = Self.defaults.merging(options.connection) { $1 }
        parameters["client_encoding"] = "UTF8"
        self.parameters = parameters
        schema = options.schema
    }

    /// Calls `body` with the keywords and values of a connection, as libpq wants them. The password is read each time,
    /// as it may have been changed.
    func withParameters<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        var parameters = parameters
        if parameters["passfile"] == nil, let password = Self.password() { parameters["password"] = password }
        let keywords = parameters.map { UnsafePointer(strdup($0.key)) } + [nil]
        let values = parameters.map { UnsafePointer(strdup($0.value)) } + [nil]
        defer { for text in keywords + values { free(UnsafeMutablePointer(mutating: text)) } }
        return keywords.withUnsafeBufferPointer { keywords in
            values.withUnsafeBufferPointer { values in
                // Neither is empty.
                body(keywords.baseAddress!, values.baseAddress!)
            }
        }
    }

    /// The first line of the credential; nil if there is none.
    private static func password() -> String? {
        guard let directory = getenv("CREDENTIALS_DIRECTORY"),
            let file = fopen("\(String(cString: directory))/\(credential)", "re")
        else { return nil }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        guard getline(&line, &capacity, file) > 0, let line else { return nil }
        return String(cString: line).trimmingNewline
    }
}

extension String {
    fileprivate var trimmingNewline: String {
        var text = self[...]
        while let last = text.last, last.isNewline { text = text.dropLast() }
        return String(text)
    }
}
