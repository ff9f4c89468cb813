import CPostgreSQL
import Glibc

/// What connections to the servers are opened with.
struct ConnectionSettings: Hashable, Sendable {
    /// The file in the directory of systemd's credentials that holds the password.
    static let credential = "postgresql.password"

    private let parameters: [String: String]
    let schema: String
    /// Whether statements are planned once, and not for each execution: a server with shards plans by the id that it
    /// is given.
    let plansOnce: Bool
    /// Whether other daemons may wait for records that a transaction of this one has locked.
    let isShared: Bool

    /// Lost servers are noticed within seconds.
    private static let defaults = [
        "connect_timeout": "2", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "2",
        "tcp_user_timeout": "6000", "application_name": "crudd",
    ]

    init(_ options: PostgreSQLOptions) {
        var parameters = Self.defaults.merging(options.connection) { $1 }
        parameters["client_encoding"] = "UTF8"
        // The plugin asks each server by itself.
        parameters["target_session_attrs"] = "any"
        self.parameters = parameters
        schema = options.schema
        plansOnce = options.tableSetup == nil
        isShared = options.isShared
    }

    /// The servers that are named: by the connection, its service, or the environment.
    func addresses() -> [ServerAddress] {
        // With a parameter that it refuses libpq finds out what the others are, and does not connect.
        let handle = Self.withPointers(parameters.merging(["target_session_attrs": "none"]) { $1 }) {
            PQconnectStartParams($0, $1, 0)
        }
        defer { PQfinish(handle) }
        guard let handle, let options = PQconninfo(handle) else { return [] }
        defer { PQconninfoFree(options) }
        var values: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return ServerAddress.list(
            hosts: values["host"] ?? "", hostAddresses: values["hostaddr"] ?? "", ports: values["port"] ?? "")
    }

    /// Calls `body` with the keywords and values of a connection, as libpq wants them. The password is read each time,
    /// as it may have been changed.
    func withParameters<Result>(
        of address: ServerAddress,
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        var parameters = parameters
        // In the place of the lists of a service, or of the environment.
        parameters["host"] = address.host.isEmpty ? address.hostAddress : address.host
        parameters["hostaddr"] = address.hostAddress
        parameters["port"] = address.port
        if parameters["passfile"] == nil, let password = Self.password() { parameters["password"] = password }
        return Self.withPointers(parameters, body)
    }

    private static func withPointers<Result>(
        _ parameters: [String: String],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
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
