/// The JSON Schemas of results, as text.
extension MethodTable {
    static let string = #"{"type":"string"}"#
    static let boolean = #"{"type":"boolean"}"#
    static let integer = #"{"type":"integer"}"#
    static let number = #"{"type":"number"}"#
    static let revision = object(["revision": string])
    static let record = object(
        ["id": string, "item": "{}", "revision": string], optional: ["expiresAt": integer])
    /// A record of which `fields` may show a part; the empty list shows nothing of the item.
    static let partOfRecord = object(
        ["id": string, "revision": string], optional: ["item": "{}", "expiresAt": integer])
    static let change = object(
        ["id": string],
        optional: [
            "revision": string, "item": "{}", "expiresAt": integer, "matches": #"{"const":false}"#,
            "deleted": #"{"const":true}"#,
        ])
    static let changes = #"{"oneOf":[{"const":false},\#(object(["retention": integer]))]}"#
    static let corrupt: KeyValuePairs = ["corrupt": array(string)]
    static let indexing = object(
        ["property": string, "state": #"{"const":"building"}"#, "indexed": integer, "total": integer],
        optional: ["reason": string])

    static let format = #"{"enum":["json","xml","plist"]}"#
    static let place = object(["backend": string, "format": format])

    static let removal = object(["backend": string, "format": format], optional: ["reason": string])

    static let move = object(required: moveMembers, optional: moveReason)
    private static let moveMembers: [(key: String, value: String)] = [
        ("from", place), ("to", place), ("copied", integer), ("total", integer),
        ("phase", #"{"enum":["pending","copying","switching","suspended","failed","removing"]}"#),
    ]
    private static let moveReason: [(key: String, value: String)] = [("reason", string)]

    static let plan = object([
        "index": #"{"type":["string","null"]}"#, "sort": #"{"enum":["id","storage","host"]}"#, "scanned": integer,
    ])

    /// What `daemon.reload` returns beside its changes where it makes none.
    static let dryRun: KeyValuePairs = [
        "refusals": array(string),
        "moving": array(object(["collection": string, "from": place, "to": place], optional: ["records": integer])),
        "orphaned": array(
            object(["collection": string, "backend": string, "format": format], optional: ["records": integer])),
        "indexing": array(object(["collection": string, "property": string], optional: ["records": integer])),
        "losses": array(string),
    ]

    static let setting = object([
        "key": string, "value": string,
        "source": #"{"enum":["file","default","environment","systemd","start","logLevel"]}"#,
    ])

    static let slowRequest = object(
        [
            "at": integer, "method": string, "collection": #"{"type":["string","null"]}"#, "seconds": number,
            "waited": number, "uid": integer, "client": string,
        ],
        optional: [
            "traceparent": string, "filter": string, "sort": string, "returned": integer, "plan": plan,
        ])

    static let permission = #"{"enum":["read","write","admin"]}"#
    /// What a rule allows the caller.
    static let accessRule = object(["allow": array(permission)], optional: ["collections": array(string)])

    static let empty = object([:])

    /// What has become of one operation of a batch.
    static let outcome =
        #"{"oneOf":[\#(object(["result": operationResult])),\#(object(["error": error]))]}"#
    private static let operationResult = object([:], optional: ["revision": string, "created": boolean, "item": "{}"])
    private static let error = object([
        "code": integer, "message": string,
        "data": object(["name": string, "retryable": boolean], optional: ["details": details]),
    ])
    private static let details = object(
        [:],
        optional: [
            "member": string, "limit": string, "maximum": integer, "revision": string, "index": integer,
            "path": string, "node": "{}", "file": string, "line": integer, "column": integer, "deleted": integer,
            "errors": array(string),
        ])

    static let backend = object(
        [
            "name": string, "isolation": #"{"enum":["inline","process"]}"#, "state": state,
            "capabilities": array(string),
        ],
        optional: [
            "plugin": string, "command": string, "path": string, "bytes": integer, "freeBytes": integer,
            "restarts": integer, "pid": integer, "notice": string,
            "lastError": string,
            "backup": object(["path": string, "bytes": integer], optional: ["totalBytes": integer]),
        ])
    private static let state = #"{"enum":["opening","ready","down","closed"]}"#

    static let plugin = object(["name": string, "version": string, "abi": integer, "path": string])

    static let limits = object([
        "frame_bytes": integer, "item_bytes": integer, "json_depth": integer, "query_limit": integer,
        "query_nodes": integer, "query_bytes": integer, "filter_pattern": integer, "batch": integer,
        "sessions": integer, "sessions_per_user": integer, "inflight_per_session": integer,
        "followers_per_session": integer, "session_bytes": integer, "buffer_bytes": integer,
        "request_timeout": integer, "idle_timeout": integer,
    ])

    static let status = object([
        "version": string, "pid": integer, "uptimeSeconds": integer, "sessions": integer,
        "backends": #"{"type":"object","additionalProperties":\#(state)}"#,
        "notices": #"{"type":"object","additionalProperties":\#(string)}"#, "cache": cache,
        "moves": array(object(required: [("collection", string)] + moveMembers, optional: moveReason)),
        "removals": array(
            object(["collection": string, "backend": string, "format": format], optional: ["reason": string])),
        "catalog": object(["state": #"{"enum":["ready","in doubt"]}"#], optional: ["reason": string]),
        "configuration": string,
    ])
    private static let cache = object([
        "hits": integer, "misses": integer, "evictions": integer, "records": integer, "bytes": integer,
        "maximumBytes": integer,
    ])

    /// Of `rpc.discover`.
    static let document = object([
        "openrpc": string, "info": object(["title": string, "version": string, "description": string]),
        "methods": array(
            object([
                "name": string, "summary": string, "x-access": string, "paramStructure": string,
                "params": array(object(["name": string, "required": boolean, "schema": anyObject])),
                "result": object(["name": string, "schema": anyObject]),
                "errors": array(object(["$ref": string])),
            ])), "components": object(["errors": anyObject]),
    ])
    private static let anyObject = #"{"type":"object","additionalProperties":true}"#

    static let histogram = object([
        "name": string, "labels": #"{"type":"object","additionalProperties":{"type":"string"}}"#,
        "counts": array(integer),
    ])

    static let session = object(
        [
            "id": integer, "uid": integer, "user": string, "client": string, "connectedAt": integer,
            "inflight": integer,
            "followers": integer, "requests": integer, "receivedBytes": integer, "sentBytes": integer,
            "heldBytes": integer,
        ],
        optional: [
            "requestsPerSecond": integer, "refusedRequests": integer,
            "quotas": object([:], optional: ["collections": quota, "records": quota, "bytes": quota]),
        ])

    private static let quota = object(["maximum": integer], optional: ["used": integer])

    static func collection(
        and members: KeyValuePairs<String, String> = [:], optional: KeyValuePairs<String, String> = [:]
    ) -> String {
        let common: KeyValuePairs = [
            "name": string, "backend": string, "format": format, "indexes": array(string),
        ]
        return object(required: Array(common) + Array(members), optional: Array(optional))
    }

    static func array(_ items: String) -> String { #"{"type":"array","items":\#(items)}"# }

    static func object(
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
