import CRUDPluginKit

/// An open collection: the table that holds it.
final class SQLiteCollection {
    /// Never used by another collection while the backend is open.
    let number: Int
    /// The table's name as a quoted identifier.
    let table: String
    let format: Format

    init(number: Int, tableName: String, format: Format) {
        self.number = number
        table = quotedIdentifier(tableName)
        self.format = format
    }

    /// What the items are.
    enum Format: String {
        case json, xml, plist

        /// The type of the column that holds the items.
        var columnType: String {
            switch self {
            case .json, .xml: "TEXT"
            case .plist: "BLOB"
            }
        }
    }
}

/// `name` as SQL spells an identifier of any text.
func quotedIdentifier(_ name: String) -> String {
    var quoted = "\""
    for scalar in name.unicodeScalars {
        if scalar == "\"" { quoted += "\"" }
        quoted.unicodeScalars.append(scalar)
    }
    return quoted + "\""
}
