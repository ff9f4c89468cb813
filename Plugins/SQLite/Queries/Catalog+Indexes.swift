import CRUDModel
import CRUDPluginKit

extension Catalog {
    /// An index of ours, as the database has it.
    private struct Existing {
        var name: String
        var sql: String
    }

    /// How the names of our indexes begin: no table of ours is called so, as a number follows `crudd_` there.
    private static let prefix = "crudd_index_"

    /// Makes those indexes of a table that are missing and drops those of ours that are not wanted any more; to be called
    /// in a transaction.
    ///
    /// - Returns: those that are there now: all but those that would not be made, each of which `warn` is told of.
    func update(
        _ indexes: [PropertyIndex], of tableName: String, warn: (String) -> Void
    ) throws(StorageFailure) -> [PropertyIndex] {
        let table = quotedIdentifier(tableName)
        var existing = try existingIndexes(of: tableName)
        var made: [PropertyIndex] = []
        var missing: [PropertyIndex] = []
        for index in indexes {
            let definition = Array(index.definition(table).utf8)
            // Text is compared by byte: Swift takes some paths for equal that are not.
            let place = existing.firstIndex { $0.sql.utf8.suffix(definition.count).elementsEqual(definition) }
            guard let place else {
                missing.append(index)
                continue
            }
            existing.remove(at: place)
            made.append(index)
        }
        for index in existing { try connection.execute("DROP INDEX \(quotedIdentifier(index.name))") }
        for index in missing {
            let name = quotedIdentifier(try freeName(index.path))
            do {
                try connection.execute("CREATE INDEX \(name) \(index.definition(table))")
                made.append(index)
            } catch let error where error.status == .internal {
                // A row that somebody has inserted is no JSON.
                warn("no index by \(index.path) on \(tableName): \(error.message)")
            }
        }
        return made
    }

    /// Whether the indexes of a table are these and no others.
    func has(_ indexes: [PropertyIndex], on tableName: String) throws(StorageFailure) -> Bool {
        let table = quotedIdentifier(tableName)
        let existing = try existingIndexes(of: tableName)
        return existing.count == indexes.count
            && indexes.allSatisfy { index in
                let definition = Array(index.definition(table).utf8)
                return existing.contains { $0.sql.utf8.suffix(definition.count).elementsEqual(definition) }
            }
    }

    private func existingIndexes(of tableName: String) throws(StorageFailure) -> [Existing] {
        var existing: [Existing] = []
        try connection.query(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1", [tableName]
        ) { row in
            let name = row.text(0)
            if name.hasPrefix(Self.prefix) { existing.append(Existing(name: name, sql: row.text(1))) }
        }
        return existing
    }

    /// A name that tells people what is indexed, and that no other index has.
    private func freeName(_ path: PropertyPath) throws(StorageFailure) -> String {
        let number = try connection.integer(
            "SELECT 1 + count(*) FROM sqlite_schema WHERE type = 'index' AND name LIKE 'crudd_index_%'")
        var next = number ?? 1
        while true {
            let start = "\(Self.prefix)\(next)_"
            let isTaken = try connection.integer(
                "SELECT 1 FROM sqlite_schema WHERE substr(name, 1, \(start.utf8.count)) = ?1 COLLATE NOCASE", [start])
            if isTaken == nil { return start + path.text }
            next += 1
        }
    }
}
