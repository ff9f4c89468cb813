/// Texts that are legal as names of collections and as ids, and that a careless plugin trips over.
enum OddNames {
    static let all: [String] = [
        "Clients Database", "../../etc/passwd", "a/b", ".", "..", "'; DROP TABLE clients; --", "\"; --", "\"", "\"\"",
        "sqlite_master", "sqlite_sequence", "SQLite_Schema", "sqlite_autoindex_clients_1", "crudd_collections",
        "crudd_1_clients", "CRUDD_x", "main", "main.clients", "select", "table", "rowid", "id", "item", "json_each",
        "pragma_table_info", "[x]", "`x`", "%", "_", "?1", ":name", "$x", "0", "x'00'", "NULL", " ", " clients",
        "clients ", "clients", "Clients", "CLIENTS", "caf\u{E9}", "cafe\u{301}", "\u{C9}t\u{E9}", "\u{E9}t\u{E9}",
        "\u{FEFF}clients", "\u{2028}",
        "👩‍👩‍👧‍👦", String(repeating: "😀", count: 32), String(repeating: "x", count: 128),
    ]
}
