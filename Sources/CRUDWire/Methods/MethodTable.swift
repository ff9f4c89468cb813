import CRUDJSON

/// Every method of the protocol: the single source of names, parameters, results, errors and permissions. Dispatch,
/// parameter checks and the OpenRPC document read it.
package enum MethodTable {
    /// In the order of ``Method``, so that a method's raw value is its row.
    package static let definitions: [MethodDefinition] = [
        MethodDefinition(
            .recordCreate, "record.create", .write, "Stores a new record.",
            required: [.collection, .id, .item], optional: [.ttl], result: revision, errors: ["record_exists"]),
        MethodDefinition(
            .recordRead, "record.read", .read, "Reads a record.",
            required: [.collection, .id], optional: [.fields], result: record, errors: ["record_not_found"]),
        MethodDefinition(
            .recordUpdate, "record.update", .write, "Replaces the item of an existing record.",
            required: [.collection, .id, .item], optional: [.ifRevision, .ttl], result: revision,
            errors: ["record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .recordDelete, "record.delete", .write, "Deletes an existing record.",
            required: [.collection, .id], optional: [.ifRevision], result: #"{"type":"object"}"#,
            errors: ["record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .recordUpsert, "record.upsert", .write, "Stores a record, whether it exists or not.",
            required: [.collection, .id, .item], optional: [.ifRevision, .ttl],
            result: object(["revision": string, "created": boolean]), errors: ["revision_mismatch"]),
        MethodDefinition(
            .recordPatch, "record.patch", .readWrite, "Changes parts of a record by a JSON Merge Patch (RFC 7396).",
            required: [.collection, .id, .patch], optional: [.ifRevision, .upsert, .ttl],
            result: object(["revision": string, "item": "{}"]), errors: ["record_not_found", "revision_mismatch"]),
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
                ["records": array(record)], optional: ["cursor": string, "corrupt": array(string), "plan": plan]),
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
            result: object(["results": array(#"{"type":"object"}"#)]),
            errors: ["record_exists", "record_not_found", "revision_mismatch"]),
        MethodDefinition(
            .collectionList, "collection.list", .everybody, "Lists the collections that the caller may read.",
            result: object(["collections": array(collection())])),
        MethodDefinition(
            .collectionDescribe, "collection.describe", .read, "Describes a collection and counts its records.",
            required: [.collection],
            result: collection(
                and: ["count": integer, "capabilities": array(string), "changes": changes],
                optional: ["indexing": array(indexing), "move": move])),
        MethodDefinition(
            .collectionChanges, "collection.changes", .read, "Returns what has changed, in order, or waits for it.",
            required: [.collection], optional: [.after, .filter, .prefix, .fields, .limit, .wait, .items],
            result: object(["changes": array(change), "cursor": string, "more": boolean], optional: corrupt),
            errors: ["invalid_query", "cursor_expired"]),
        MethodDefinition(
            .collectionDrop, "collection.drop", .admin, "Deletes a collection with all its records.",
            required: [.collection], optional: [.ifEmpty, .moved], result: object(["dropped": boolean]),
            errors: ["record_exists", "unsupported"]),
        MethodDefinition(
            .collectionReindex, "collection.reindex", .admin, "Rebuilds a collection's indexes in the background.",
            required: [.collection], result: #"{"type":"object"}"#),
        MethodDefinition(
            .backendList, "backend.list", .admin, "Lists the backends and their states.",
            result: object(["backends": array(#"{"type":"object"}"#)])),
        MethodDefinition(
            .pluginList, "plugin.list", .admin, "Lists the loaded plugins.",
            result: object(["plugins": array(#"{"type":"object"}"#)])),
        MethodDefinition(
            .sessionHello, "session.hello", .everybody, "Exchanges names and versions.",
            optional: [.client, .protocolVersion],
            result: object([
                "daemon": string, "version": string, "protocol": integer, "limits": #"{"type":"object"}"#,
            ])),
        MethodDefinition(
            .daemonPing, "daemon.ping", .everybody, "Does nothing.", result: #"{"type":"object"}"#),
        MethodDefinition(
            .daemonStatus, "daemon.status", .admin, "Returns the state of the daemon.", result: #"{"type":"object"}"#),
        MethodDefinition(
            .daemonMetrics, "daemon.metrics", .admin, "Returns the daemon's metrics in OpenMetrics 1.0 text format.",
            result: object(["text": string])),
        MethodDefinition(
            .daemonSlowLog, "daemon.slowLog", .admin, "Lists the latest slow requests, the newest first.",
            optional: [.limit], result: object(["entries": array(slowRequest)])),
        MethodDefinition(
            .sessionList, "session.list", .admin, "Lists the sessions of all clients.",
            result: object(["sessions": array(session)])),
        MethodDefinition(
            .sessionClose, "session.close", .admin, "Closes a session, after replies to its requests in flight.",
            required: [.session], result: #"{"type":"object"}"#),
        MethodDefinition(
            .daemonReload, "daemon.reload", .admin, "Reads the configuration again and returns what has changed.",
            optional: [.force, .move], result: object(["changes": array(string), "moves": array(string)]),
            errors: ["invalid_configuration"]),
        MethodDefinition(
            .discover, "rpc.discover", .everybody, "Returns this document.", result: #"{"type":"object"}"#),
    ]

    /// The part of every row that dispatch needs.
    static let traits = definitions.map(\.traits)

    // MARK: Schemas

    private static let string = #"{"type":"string"}"#
    private static let boolean = #"{"type":"boolean"}"#
    private static let integer = #"{"type":"integer"}"#
    private static let number = #"{"type":"number"}"#
    private static let revision = object(["revision": string])
    private static let record = object(
        ["id": string, "item": "{}", "revision": string], optional: ["expiresAt": integer])
    private static let change = object(
        ["id": string],
        optional: [
            "revision": string, "item": "{}", "expiresAt": integer, "matches": #"{"const":false}"#,
            "deleted": #"{"const":true}"#,
        ])
    private static let changes =
        #"{"oneOf":[{"const":false},{"type":"object","properties":{"retention":{"type":"integer"}}}]}"#
    private static let corrupt: KeyValuePairs = ["corrupt": array(string)]
    private static let indexing = object(["property": string, "indexed": integer, "total": integer])

    private static let format = #"{"enum":["json","xml","plist"]}"#
    private static let place = object(["backend": string, "format": format])

    private static let move = object(
        [
            "from": place, "to": place, "copied": integer, "total": integer,
            "phase": #"{"enum":["pending","copying","switching","suspended","failed","removing"]}"#,
        ], optional: ["reason": string])

    private static let plan = object([
        "index": #"{"type":["string","null"]}"#, "sort": #"{"enum":["id","storage","host"]}"#, "scanned": integer,
    ])

    private static let slowRequest = object(
        [
            "at": integer, "method": string, "collection": #"{"type":["string","null"]}"#, "seconds": number,
            "waited": number, "uid": integer,
        ],
        optional: ["plan": plan])

    private static let session = object([
        "id": integer, "uid": integer, "user": string, "client": string, "connectedAt": integer, "inflight": integer,
        "requests": integer, "receivedBytes": integer, "sentBytes": integer, "heldBytes": integer,
    ])

    private static func collection(
        and members: KeyValuePairs<String, String> = [:], optional: KeyValuePairs<String, String> = [:]
    ) -> String {
        let common: KeyValuePairs = [
            "name": string, "backend": string, "format": format, "indexes": array(string),
        ]
        return object(required: Array(common) + Array(members), optional: Array(optional))
    }

    private static func array(_ items: String) -> String { #"{"type":"array","items":\#(items)}"# }

    private static func object(
        _ members: KeyValuePairs<String, String>, optional: KeyValuePairs<String, String> = [:]
    ) -> String {
        object(required: Array(members), optional: Array(optional))
    }

    private static func object(
        required: [(key: String, value: String)], optional: [(key: String, value: String)]
    ) -> String {
        let properties = (required + optional).map { #""\#($0.key)":\#($0.value)"# }.joined(separator: ",")
        let required = required.map { #""\#($0.key)""# }.joined(separator: ",")
        return #"{"type":"object","properties":{\#(properties)},"required":[\#(required)]}"#
    }
}
