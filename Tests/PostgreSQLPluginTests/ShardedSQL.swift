import Testing

/// What servers that keep the rows of one table on several machines refuse, or do badly, as Citus 13.2 was seen to
/// (`etc/POSTGRESQL-CLUSTER.md`).
enum ShardedSQL {
    /// What no statement must contain: volatile functions, triggers, extensions, advisory locks, a change of the column
    /// of distribution, and arrays that lock every shard or crash the coordinator.
    private static let forbidden = [
        "nextval(", "setval(", "clock_timestamp(", "statement_timestamp(", "random(", "gen_random_uuid(", "TRIGGER",
        "EXTENSION", "advisory", "SET id =", "unnest(", "array_position(", "LOCK TABLE", "LISTEN",
        "NOTIFY", "MERGE", "CREATE SEQUENCE", "SERIAL", "REFERENCES", "CURSOR",
    ]
    /// What only those may contain that are about the plugin's own tables alone, which are on one machine: locks of
    /// rows that are found, the clock of the machine, and what is unique beside the column of distribution.
    private static let forbiddenForRecords = ["FOR UPDATE", "FOR SHARE", "FOR NO KEY", "FOR KEY", "now()", "UNIQUE"]

    /// What several daemons that write one schema need: it locks one row, or none of a table.
    private static let locks = ["WHERE id = $ FOR UPDATE", "pg_advisory_xact_lock"]

    /// A statement without names, numbers and lengths.
    private struct Shape: Hashable {
        var text = ""
        /// Whether it is about tables of the plugin alone.
        var isOfOwnTables: Bool

        init(_ statement: String) {
            // Names are every other piece, those of tables with the one of the schema before them.
            let pieces = statement.split(separator: "\"", omittingEmptySubsequences: false)
            for index in stride(from: 0, to: pieces.count, by: 2) {
                text += pieces[index].filter { !$0.isNumber } + "?"
            }
            let tables = stride(from: 3, to: pieces.count, by: 2).filter { pieces[$0 - 1] == "." }.map { pieces[$0] }
            isOfOwnTables = !tables.isEmpty && tables.allSatisfy { $0.hasPrefix("crudd_") }
            // The default is for rows that people insert by hand.
            text = text.replacing("DEFAULT CAST(gen_random_uuid() AS text)", with: "")
        }
    }

    /// Checks the texts of statements.
    static func check(_ statements: [String]) {
        let shapes = Set(Set(statements).map(Shape.init))
        // All kinds of work have been done.
        for words in ["ON CONFLICT", "= ANY ($)", "UPDATE ", "DELETE FROM", "CREATE TABLE", "DROP COLUMN"] {
            #expect(shapes.contains { $0.text.contains(words) }, "no statement with \(words)")
        }
        for shape in shapes where !locks.contains(where: shape.text.contains) {
            for words in forbidden + (shape.isOfOwnTables ? [] : forbiddenForRecords) {
                #expect(!shape.text.contains(words), "\(shape.text)")
            }
        }
    }
}
