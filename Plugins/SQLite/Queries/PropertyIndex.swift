import CRUDModel

/// An index over one property of a collection's items: the rank of its type, its value, and the id.
///
/// It is made of SQLite's own functions, so that every program that opens the file keeps it up to date. They tell values
/// apart almost as the protocol does, and the ranks keep what they get right from what they do not:
/// - Text of a number with fraction or exponent, or beyond 64 bits, becomes a real that may be off by a few of the last
///   binary digits.
/// - In older versions of SQLite a string ends at its first NUL, so that of items with such an escape somewhere the
///   strings have a rank of their own.
///
/// Therefore an index only ever says where to look; what is found is decided by the item.
struct PropertyIndex {
    /// What the first column holds. Types stand in the order of sorting.
    enum Rank: Int64 {
        case null, `false`, `true`, integer, real, string, stringNearNUL, array, object
    }

    let path: PropertyPath
    /// Never used for another index while the backend is open.
    let number: Int
    /// The first column and the second.
    let rank: String
    let value: String

    /// nil for a path that SQLite cannot follow: it takes names as they are spelt, and none may be empty.
    init?(_ path: PropertyPath, number: Int) {
        var steps = "$"
        for name in path.names {
            let isPlain = name.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            guard !name.isEmpty, isPlain else { return nil }
            steps += ".\"\(name)\""
        }
        self.path = path
        self.number = number
        let arguments = "item, \(quotedText(steps))"
        rank = """
            CASE json_type(\(arguments)) WHEN 'false' THEN 1 WHEN 'true' THEN 2 WHEN 'integer' THEN \
            iif(typeof(json_extract(\(arguments))) = 'integer', 3, 4) WHEN 'real' THEN 4 WHEN 'text' THEN \
            iif(instr(item, '\\u0000') = 0, 5, 6) WHEN 'array' THEN 7 WHEN 'object' THEN 8 ELSE 0 END
            """
        value = "CASE WHEN json_type(\(arguments)) IN ('integer', 'real', 'text') THEN json_extract(\(arguments)) END"
    }

    /// How its CREATE INDEX goes on behind the name.
    ///
    /// - Parameter table: a quoted identifier.
    func definition(_ table: String) -> String {
        "ON \(table) (\(rank), \(value), id)"
    }
}

/// `text` as SQL spells a string.
func quotedText(_ text: String) -> String {
    var quoted = "'"
    for scalar in text.unicodeScalars {
        if scalar == "'" { quoted += "'" }
        quoted.unicodeScalars.append(scalar)
    }
    return quoted + "'"
}
