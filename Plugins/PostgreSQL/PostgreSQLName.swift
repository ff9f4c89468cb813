/// Names of objects of a database.
enum PostgreSQLName {
    /// Longer ones are cut by the server.
    static let maximumBytes = 63

    /// `name` as SQL spells an identifier of any text.
    static func quoted(_ name: String) -> String {
        var quoted = "\""
        for scalar in name.unicodeScalars {
            if scalar == "\"" { quoted += "\"" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }

    /// The first code points of `name` that fit into so many bytes.
    static func prefix(of name: String, bytes: Int) -> String {
        var prefix = ""
        var size = 0
        for scalar in name.unicodeScalars {
            size += String(scalar).utf8.count
            if size > bytes { break }
            prefix.unicodeScalars.append(scalar)
        }
        return prefix
    }
}
