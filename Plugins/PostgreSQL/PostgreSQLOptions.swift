import CPostgreSQL
import CRUDPluginKit

/// What the administrator configures.
struct PostgreSQLOptions: PluginOptions {
    enum Key: String, CaseIterable {
        case connection, schema, readers, shared
        case tableSetup = "table_setup"
    }

    /// The parameters of libpq that the connection string gives.
    let connection: [String: String]
    let schema: String
    /// How many connections read.
    let readers: Int
    /// Whether several daemons write at once.
    let isShared: Bool
    /// SQL that is run after the table of a collection has been created.
    let tableSetup: String?
    /// Whether the server numbers changes, if it can: there are several daemons, and no shards that SQL of the
    /// administrator makes, each of which has transactions of its own.
    var numbersChanges: Bool { isShared && tableSetup == nil }

    init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        schema = try reader.string(.schema, default: "crudd")
        guard (1...PostgreSQLName.maximumBytes).contains(schema.utf8.count), !schema.utf8.contains(0),
            !schema.hasPrefix("pg_")
        else {
            throw reader.invalid(
                .schema, "must be 1 to \(PostgreSQLName.maximumBytes) bytes of text that do not begin with pg_")
        }
        readers = try reader.integer(.readers, in: 1...64, default: 4)
        isShared = try reader.bool(.shared, default: false)
        let setup = try reader.string(.tableSetup, default: "")
        guard !setup.utf8.contains(0) else { throw reader.invalid(.tableSetup, "must be SQL") }
        tableSetup = setup.isEmpty ? nil : setup
        connection = try Self.parameters(try reader.string(.connection), reader)
    }

    private static func parameters(
        _ text: String, _ reader: OptionReader<Key>
    ) throws(StorageFailure) -> [String: String] {
        guard !text.utf8.contains(0) else { throw reader.invalid(.connection, "must be text without NUL") }
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(text, &message) else {
            let reason = message.map { String(cString: $0) } ?? "out of memory"
            PQfreemem(message)
            // libpq quotes what it cannot read, which may be part of a password.
            let isQuotable = !text.contains("pass") && !text.contains("@")
            throw reader.invalid(
                .connection,
                "must be a connection string or URI of libpq\(isQuotable ? ": \(singleLine(reason))" : "")")
        }
        defer { PQconninfoFree(options) }
        var parameters: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { parameters[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        guard parameters["password"] == nil, parameters["sslpassword"] == nil else {
            throw reader.invalid(
                .connection,
                """
                must not hold a password; name a passfile or a service, \
                or give the daemon a credential \(ConnectionSettings.credential)
                """)
        }
        return parameters
    }
}

/// A text of libpq's as one line.
func singleLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).map { $0.drop(while: \.isWhitespace) }.joined(separator: "; ")
}
