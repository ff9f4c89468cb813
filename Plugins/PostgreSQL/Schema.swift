import CRUDPluginKit

/// The tables of this plugin in the schema of a backend.
struct Schema {
    /// Of the tables here and of collections; what a later version has made is refused.
    static let version: Int64 = 3

    private static let maximumAttempts = 5

    /// The name of the schema.
    let name: String
    /// Whether the server numbers changes (``TransactionNumber``).
    var numbersChanges = false
    /// As a quoted identifier.
    private var quotedName: String { PostgreSQLName.quoted(name) }

    /// The name of a table in this schema, as SQL spells it.
    func table(_ table: String) -> String { "\(quotedName).\(PostgreSQLName.quoted(table))" }

    /// Makes what is missing, and looks whether what is there is ours.
    func prepare(_ connection: Connection, _ host: Host, _ wait: Wait) throws(StorageFailure) {
        var attempts = 0
        while true {
            let script: String
            let content = try content(connection, wait)
            if host.expectsStorage {
                try host.requireStorage(identity(of: content, connection, wait), in: "schema \(name)")
            }
            switch content {
            case .nothing: script = creation
            case .version(1): script = "\(history); \(upgrade)"
            case .version(2): script = upgrade
            case .version(Self.version): return
            case .version(let version):
                throw StorageFailure(
                    .unsupported, "schema \(name) has version \(version), and this plugin knows \(Self.version)")
            case .other(let relation):
                throw StorageFailure(
                    .unsupported, "schema \(name) belongs to another program: it holds \(relation)")
            }
            // One transaction.
            guard let error = try connection.run(script: script, wait).error else { return }
            attempts += 1
            // Of several daemons that start at the same time one succeeds, and the others find what it has made.
            guard error.isCollision, attempts < Self.maximumAttempts else {
                throw StorageFailure(.unavailable, "cannot make schema \(name): \(error.description)")
            }
        }
    }

    /// What is in the schema.
    private enum Content {
        case nothing
        /// Tables of this plugin.
        case version(Int64)
        /// Something else, such as this.
        case other(String)
    }

    private func content(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Content {
        var parameters = Parameters()
        parameters.add(name)
        let relations = try connection.query(
            """
            SELECT relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS s ON s.oid = relnamespace
            WHERE nspname = $1 AND relkind <> 'i' ORDER BY relname <> 'crudd_schema' LIMIT 1
            """, parameters, [.text], wait
        ).check("look into schema \(name)")
        if relations.rowCount == 0 { return .nothing }
        guard relations.text(0, 0) == "crudd_schema" else { return .other(relations.text(0, 0)) }
        let versions = try connection.query("SELECT version FROM \(table("crudd_schema"))", Parameters(), [], wait)
            .check("read the version of schema \(name)")
        return .version(versions.rowCount == 1 ? versions.integer(0, 0) : 0)
    }

    /// What tells a storage from others; 0 where an older version has made it, nil where there is none.
    private func identity(
        of content: Content, _ connection: Connection, _ wait: Wait
    ) throws(StorageFailure) -> UInt64? {
        switch content {
        case .nothing, .other: nil
        case .version(let version): version < Self.version ? 0 : try identity(connection, wait)
        }
    }

    private var creation: String {
        """
        CREATE SCHEMA IF NOT EXISTS \(quotedName);
        CREATE TABLE \(table("crudd_schema")) (version bigint PRIMARY KEY);
        CREATE TABLE \(table("crudd_lease")) (
            number bigint PRIMARY KEY,
            holder text,
            place text,
            fence bigint NOT NULL,
            expires_at timestamptz,
            sequence_ceiling bigint NOT NULL
        );
        CREATE TABLE \(table("crudd_collections")) (
            number bigint PRIMARY KEY,
            name text COLLATE "C" NOT NULL,
            format text NOT NULL,
            table_name text COLLATE "C" NOT NULL UNIQUE,
            UNIQUE (name, format)
        );
        CREATE TABLE \(table("crudd_indexes")) (
            number bigint PRIMARY KEY,
            collection bigint NOT NULL,
            path text COLLATE "C" NOT NULL,
            UNIQUE (collection, path)
        );
        \(history);
        \(storage);
        INSERT INTO \(table("crudd_lease")) (number, fence, sequence_ceiling) VALUES (1, 0, 0);
        INSERT INTO \(table("crudd_schema")) (version) VALUES (\(Self.version))
        """
    }

    /// What version 2 lacks; version 1 has no history either.
    private var upgrade: String {
        "\(storage); UPDATE \(table("crudd_schema")) SET version = \(Self.version)"
    }

    private var storage: String {
        """
        CREATE TABLE \(table("crudd_storage")) (identity bigint PRIMARY KEY);
        INSERT INTO \(table("crudd_storage")) (identity) VALUES (\(History.makeIdentity()))
        """
    }

    /// What tells this storage from others; 0 where the table has been emptied.
    func identity(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> UInt64 {
        let result = try connection.query(
            "SELECT max(identity) FROM \(table("crudd_storage"))", Parameters(), [], wait
        ).check("read the identity of schema \(name)")
        return UInt64(clamping: result.integer(0, 0))
    }

    /// The highest sequence number that a record or a removal has; 0: none has one.
    func highestSequence(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Int64 {
        let collections = try connection.query(
            "SELECT table_name, number FROM \(table("crudd_collections"))", Parameters(), [], wait
        ).check("list collections")
        var highest: Int64 = 0
        for row in 0..<collections.rowCount {
            for name in [collections.text(row, 0), removalTable(collections.integer(row, 1))] {
                guard try exists(name, connection, wait) else { continue }
                let result = try connection.query("SELECT max(sequence) FROM \(table(name))", Parameters(), [], wait)
                highest = max(highest, try result.check("look at table \(name)").integer(0, 0))
            }
        }
        return highest
    }

    private var history: String {
        """
        CREATE TABLE \(table("crudd_history")) (
            collection bigint PRIMARY KEY,
            identity bigint NOT NULL,
            forgotten bigint NOT NULL
        )
        """
    }

    /// Whether the schema has a relation of that name.
    func exists(_ relation: String, _ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        var parameters = Parameters()
        parameters.add(name)
        parameters.add(relation)
        let result = try connection.query(
            """
            SELECT 1 FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS s ON s.oid = relnamespace
            WHERE nspname = $1 AND relname = $2
            """, parameters, [.text, .text], wait
        ).check("look into schema \(name)")
        return result.rowCount > 0
    }
}
