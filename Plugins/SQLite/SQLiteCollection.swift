import CRUDPluginKit
import Synchronization

/// An open collection: the table that holds it.
final class SQLiteCollection: Sendable {
    /// Never used by another collection while the backend is open.
    let number: Int
    let tableName: String
    /// The table's name as a quoted identifier.
    let table: String
    let format: Format
    private let madeIndexes = Mutex<[PropertyIndex]>([])

    /// The indexes that there are. The backend's thread sets them, readers look.
    var indexes: [PropertyIndex] {
        get { madeIndexes.withLock { $0 } }
        set { madeIndexes.withLock { $0 = newValue } }
    }

    init(number: Int, tableName: String, format: Format) {
        self.number = number
        self.tableName = tableName
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
