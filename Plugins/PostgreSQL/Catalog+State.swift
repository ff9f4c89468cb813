import CRUDPluginKit

extension Catalog {
    func state(of collection: PostgreSQLCollection) throws(StorageFailure) -> TableState {
        let what = "look at table \(collection.tableName)"
        let table =
            "SELECT t.oid FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS s ON s.oid = relnamespace"
        let ofName = "(\(table) WHERE nspname = $1 AND relname = $2)"
        let names = [schema.name, collection.tableName]
        var state = TableState()
        let columns = try query(
            """
            SELECT attname FROM pg_catalog.pg_attribute
            WHERE attrelid IN \(ofName) AND attnum > 0 AND NOT attisdropped AND starts_with(attname, 'crudd_key_')
            """, names, what)
        for row in 0..<columns.rowCount {
            if let number = Int64(columns.text(row, 0).dropFirst("crudd_key_".count)) { state.columns.insert(number) }
        }
        let indexes = try query(
            """
            SELECT i.relname, indisvalid AND indisready FROM pg_catalog.pg_index
            JOIN pg_catalog.pg_class AS i ON i.oid = indexrelid WHERE indrelid IN \(ofName)
            """, names, what)
        for row in 0..<indexes.rowCount { state.indexes[indexes.text(row, 0)] = indexes.integer(row, 1) == 1 }
        let size = try query(
            "SELECT pg_relation_size(t.oid) FROM (\(table) WHERE nspname = $1 AND relname = $2) AS t", names, what)
        state.bytes = size.rowCount == 1 ? size.integer(0, 0) : 0
        if state.bytes == 0, size.rowCount == 1 {
            let table = schema.table(collection.tableName)
            let rows = "SELECT 1 FROM \(table) LIMIT \(TableState.manyRows)"
            state.rowsElsewhere = try query("SELECT count(*) FROM (\(rows)) AS r", [], what).integer(0, 0)
        }
        state.hasRemovals = try schema.exists(removalTable(collection.number), connection, wait)
        return state
    }
}
