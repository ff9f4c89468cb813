import CRUDJSON

/// Every method of the protocol: the single source of names, parameters, results, errors and permissions. Dispatch,
/// parameter checks and the OpenRPC document read it.
package enum MethodTable {
    /// In the order of ``Method``, so that a method's raw value is its row.
    package static let definitions: [MethodDefinition] = [
        MethodDefinition(
            .recordCreate, "record.create", .write, "Stores a new record.",
            required: [.collection, .id, .item], optional: [.ttl, .expiresAt], result: revision,
            errors: ["record_exists"]),
        MethodDefinition(
            .recordRead, "record.read", .read, "Reads a record.",
            required: [.collection, .id], optional: [.fields], result: partOfRecord, errors: ["record_not_found"]),
        MethodDefinition(
            .recordUpdate, "record.update", .write, "Replaces the item of an existing record.",
            required: [.collection, .id, .item], optional: [.ifRevision, .ttl, .expiresAt], result: revision,
            errors: ["record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .recordDelete, "record.delete", .write, "Deletes an existing record.",
            required: [.collection, .id], optional: [.ifRevision], result: empty,
            errors: ["record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .recordUpsert, "record.upsert", .write, "Stores a record, whether it exists or not.",
            required: [.collection, .id, .item], optional: [.ifRevision, .ttl, .expiresAt],
            result: object(["revision": string, "created": boolean]), errors: ["revision_mismatch"]),
        MethodDefinition(
            .recordPatch, "record.patch", .readWrite,
            "Changes parts of a record by a JSON Merge Patch (RFC 7396) and by field operations.",
            required: [.collection, .id], optional: [.ifRevision, .upsert, .ttl, .expiresAt],
            alternatives: [.patch, .increment, .minimum, .maximum, .append, .add, .remove],
            result: object(["revision": string, "item": "{}"]), errors: ["record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .recordTouch, "record.touch", .write, "Determines when a record expires, and changes nothing else.",
            required: [.collection, .id], optional: [.ifRevision], alternatives: [.ttl, .expiresAt], result: revision,
            errors: ["record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .recordExists, "record.exists", .read, "Returns whether a record exists.",
            required: [.collection, .id], result: object(["exists": boolean])),
        MethodDefinition(
            .recordReadMany, "record.readMany", .read, "Reads several records of one collection.",
            required: [.collection, .ids],
            result: object(["records": array(record), "missing": array(string)], optional: corrupt)),
        MethodDefinition(
            .recordQuery, "record.query", .read, "Finds records, page by page.",
            required: [.collection], optional: [.filter, .prefix, .sort, .limit, .cursor, .fields, .explain],
            result: object(
                ["records": array(partOfRecord)], optional: ["cursor": string, "corrupt": array(string), "plan": plan]),
            errors: ["invalid_query"]),
        MethodDefinition(
            .recordCount, "record.count", .read, "Counts records.",
            required: [.collection], optional: [.filter, .prefix],
            result: object(["count": integer], optional: corrupt), errors: ["invalid_query"]),
        MethodDefinition(
            .recordDeleteMatching, "record.deleteMatching", .readWrite, "Deletes the records that match.",
            required: [.collection], optional: [.filter, .prefix, .all],
            result: object(["deleted": integer], optional: corrupt), errors: ["invalid_query"]),
        MethodDefinition(
            .recordBatch, "record.batch", .operations, "Executes several operations in order, atomically on request.",
            required: [.operations], optional: [.atomic],
            result: object(["results": array(outcome)]),
            errors: ["record_exists", "record_not_found", "revision_mismatch", "unsupported"]),
        MethodDefinition(
            .collectionList, "collection.list", .everybody, "Lists the collections that the caller may read.",
            result: object(["collections": array(collection())])),
        MethodDefinition(
            .collectionDescribe, "collection.describe", .read, "Describes a collection and counts its records.",
            required: [.collection], optional: [.sizes],
            result: collection(
                and: ["capabilities": array(string), "changes": changes],
                optional: [
                    "bytes": integer, "count": integer, "estimated": boolean, "indexing": array(indexing), "move": move,
                    "originals": array(place),
                    "removing": array(removal),
                ])),
        MethodDefinition(
            .collectionChanges, "collection.changes", .read, "Returns what has changed, in order, or waits for it.",
            required: [.collection], optional: [.after, .filter, .prefix, .fields, .limit, .wait, .items],
            result: object(["changes": array(change), "cursor": string, "more": boolean], optional: corrupt),
            errors: ["invalid_query", "cursor_expired"]),
        MethodDefinition(
            .collectionDrop, "collection.drop", .admin, "Deletes a collection with all its records.",
            required: [.collection], optional: [.ifEmpty, .moved],
            result: object(["dropped": boolean], optional: ["removing": array(removal)]), errors: ["record_exists"]),
        MethodDefinition(
            .collectionReindex, "collection.reindex", .admin, "Rebuilds a collection's indexes in the background.",
            required: [.collection], result: empty),
        MethodDefinition(
            .backendList, "backend.list", .admin, "Lists the backends and their states.",
            result: object(["backends": array(backend)])),
        MethodDefinition(
            .backendBackup, "backend.backup", .admin, "Writes a copy of a backend's storage while it serves.",
            required: [.backend, .directory],
            result: object(["path": string, "bytes": integer, "at": integer, "seconds": number]),
            errors: ["unsupported", "no_space"]),
        MethodDefinition(
            .pluginList, "plugin.list", .admin, "Lists the loaded plugins.",
            result: object(["plugins": array(plugin)])),
        MethodDefinition(
            .sessionHello, "session.hello", .everybody, "Exchanges names and versions.",
            optional: [.client, .protocolVersion],
            result: object(["daemon": string, "version": string, "protocol": integer, "limits": limits])),
        MethodDefinition(
            .sessionWhoami, "session.whoami", .everybody, "Returns who the caller is, and what the rules allow it.",
            result: object([
                "session": integer, "uid": integer, "groups": array(integer), "access": array(accessRule),
            ])),
        MethodDefinition(
            .accessCheck, "access.check", .everybody, "Returns whether the caller, or another user, may call a method.",
            required: [.method], optional: [.collection, .user],
            result: object([
                "allowed": boolean, "uid": integer, "requires": array(permission), "has": array(permission),
            ])),
        MethodDefinition(
            .daemonPing, "daemon.ping", .everybody, "Does nothing.", result: empty),
        MethodDefinition(
            .daemonStatus, "daemon.status", .admin, "Returns the state of the daemon.", result: status),
        MethodDefinition(
            .daemonMetrics, "daemon.metrics", .admin, "Returns the daemon's metrics in OpenMetrics 1.0 text format.",
            optional: [.histograms], result: object(["text": string], optional: ["histograms": array(histogram)])),
        MethodDefinition(
            .daemonSlowLog, "daemon.slowLog", .admin, "Lists the latest slow requests, the newest first.",
            optional: [.limit], result: object(["entries": array(slowRequest)])),
        MethodDefinition(
            .daemonConfiguration, "daemon.configuration", .admin, "Lists the settings that are in force.",
            result: object(["file": string, "settings": array(setting)])),
        MethodDefinition(
            .daemonLogLevel, "daemon.logLevel", .admin, "Sets how much is logged until the next reload.",
            required: [.level], result: object(["level": string, "former": string])),
        MethodDefinition(
            .sessionList, "session.list", .admin, "Lists the sessions of all clients.",
            result: object(["sessions": array(session)])),
        MethodDefinition(
            .sessionClose, "session.close", .admin, "Closes a session, after replies to its requests in flight.",
            required: [.session], result: empty),
        MethodDefinition(
            .requestCancel, "request.cancel", .everybody,
            "Ends a wait for changes, or withdraws a request of the same connection that has not begun.",
            required: [.id], result: empty),
        MethodDefinition(
            .daemonReload, "daemon.reload", .admin, "Reads the configuration again and returns what has changed.",
            optional: [.force, .move, .dryRun],
            result: object(
                ["changes": array(string), "moves": array(string), "cancelled": array(string)], optional: dryRun),
            errors: ["invalid_configuration"]),
        MethodDefinition(
            .discover, "rpc.discover", .everybody, "Returns this document.", result: document),
    ]

    /// The part of every row that dispatch needs.
    static let traits = definitions.map(\.traits)
}
