package import CRUDJSON
import CRUDModel

/// A member of `params`. A name has the same meaning in every method.
package enum Parameter: Int, CaseIterable, Sendable {
    case collection, id, item, ids, fields, ifRevision, client, protocolVersion, force
    case patch, upsert, operations, atomic
    case filter, prefix, sort, limit, cursor, explain, all, ifEmpty, move, moved
    case session, ttl, expiresAt, after, wait, items
    case method, user
    case sizes, dryRun, level, backend, directory
    case increment, minimum, maximum, append, add, remove
    case histograms

    /// The name on the wire.
    package var name: StaticString {
        switch self {
        case .collection: "collection"
        case .id: "id"
        case .item: "item"
        case .ids: "ids"
        case .fields: "fields"
        case .ifRevision: "ifRevision"
        case .client: "client"
        case .protocolVersion: "protocol"
        case .force: "force"
        case .patch: "patch"
        case .upsert: "upsert"
        case .operations: "operations"
        case .atomic: "atomic"
        case .filter: "filter"
        case .prefix: "prefix"
        case .sort: "sort"
        case .limit: "limit"
        case .cursor: "cursor"
        case .explain: "explain"
        case .all: "all"
        case .ifEmpty: "ifEmpty"
        case .move: "move"
        case .moved: "moved"
        case .session: "session"
        case .ttl: "ttl"
        case .expiresAt: "expiresAt"
        case .after: "after"
        case .wait: "wait"
        case .items: "items"
        case .method: "method"
        case .user: "user"
        case .sizes: "sizes"
        case .histograms: "histograms"
        case .dryRun: "dryRun"
        case .level: "level"
        case .backend: "backend"
        case .directory: "directory"
        case .increment: "increment"
        case .minimum: "minimum"
        case .maximum: "maximum"
        case .append: "append"
        case .add: "add"
        case .remove: "remove"
        }
    }

    /// Those that are field operations.
    static let fieldOperations: [(parameter: Parameter, operation: FieldOperation)] = [
        (.increment, .increment), (.minimum, .minimum), (.maximum, .maximum), (.append, .append), (.add, .add),
        (.remove, .remove),
    ]

    /// The kind of JSON value that it must be; nil for any, and for a boolean.
    package var kind: JSONKind? {
        switch self {
        case .collection, .id, .ifRevision, .client, .prefix, .cursor, .after, .method, .user, .level, .backend,
            .directory:
            .string
        case .ids, .fields, .operations, .sort: .array
        case .protocolVersion, .limit, .session, .ttl, .expiresAt, .wait: .number
        case .increment, .minimum, .maximum, .append, .add, .remove: .object
        case .item, .patch, .filter, .upsert, .atomic, .explain, .all, .ifEmpty, .force, .move, .moved, .items,
            .sizes, .dryRun, .histograms:
            nil
        }
    }

    /// Whether it must be true or false.
    package var isBoolean: Bool {
        switch self {
        case .upsert, .atomic, .explain, .all, .ifEmpty, .force, .move, .moved, .items, .sizes, .dryRun,
            .histograms:
            true
        default: false
        }
    }

    /// Its JSON Schema in a method, as text.
    func schema(in method: Method) -> String {
        switch self {
        case .collection:
            #"{"type":"string","minLength":1,"description":"1 to 128 bytes of UTF-8, no control characters"}"#
        case .id where method == .requestCancel:
            #"{"type":["string","integer","null"],"description":"that of the request, as it was sent"}"#
        case .id: #"{"type":"string","minLength":1,"description":"1 to 512 bytes of UTF-8, no control characters"}"#
        case .item: #"{"description":"any JSON value"}"#
        case .ids: #"{"type":"array","items":{"type":"string","minLength":1}}"#
        case .fields: #"{"type":"array","items":{"type":"string"},"description":"property paths"}"#
        case .ifRevision: #"{"type":"string","maxLength":64}"#
        case .client: #"{"type":"string","description":"who is calling, for the log"}"#
        case .force: #"{"type":"boolean"}"#
        case .protocolVersion: #"{"type":"integer","description":"the protocol version that the client speaks"}"#
        case .patch: #"{"description":"a JSON Merge Patch (RFC 7396); this or a field operation is required"}"#
        case .upsert: #"{"type":"boolean","description":"a missing record starts as {}"}"#
        case .operations:
            #"{"type":"array","items":{"oneOf":[\#(Operation.Kind.allCases.map(\.schema).joined(separator: ","))]}}"#
        case .atomic: #"{"type":"boolean","description":"all operations take effect or none does"}"#
        case .filter: #"{"type":["object","boolean"],"description":"a condition in the JSON encoding of CQL2"}"#
        case .prefix: #"{"type":"string","description":"what the ids begin with"}"#
        case .sort:
            #"{"type":"array","items":{"type":"object","properties":{"property":{"type":"string"},"order":"#
                + #"{"enum":["asc","desc"]}},"required":["property"]}}"#
        case .limit: #"{"type":"integer","minimum":1,"default":1000}"#
        case .cursor: #"{"type":"string","description":"where the previous page ended"}"#
        case .explain: #"{"type":"boolean","description":"whether the result has a plan of the execution"}"#
        case .all: #"{"type":"boolean","description":"true: all records"}"#
        case .ifEmpty: #"{"type":"boolean","description":"true: only if it has no record"}"#
        case .move: #"{"type":"boolean","description":"true: collections whose place changes are moved"}"#
        case .moved: #"{"type":"boolean","description":"true: only what its moves have left where it was"}"#
        case .session: #"{"type":"integer","minimum":1,"description":"its id in session.list"}"#
        case .ttl: Self.ttlSchema(takesNull: method.takesNullTTL)
        case .expiresAt:
            #"{"type":"integer","minimum":1,"maximum":\#(DefaultLimits.latestExpiry),"description":"in place of "#
                + #"ttl: when the record expires, in milliseconds since 1970-01-01 UTC"}"#
        case .after: #"{"type":"string","default":"start","description":"\"start\", \"now\" or a cursor"}"#
        case .wait:
            #"{"type":"number","minimum":0,"maximum":\#(DefaultLimits.waitSeconds),"default":0,"description":"#
                + #""for how many seconds to wait for a change"}"#
        case .items: #"{"type":"boolean","default":true,"description":"false: without items"}"#
        case .method: #"{"type":"string","description":"the name of a method"}"#
        case .user: #"{"type":"string","description":"a name or a number"}"#
        case .level: #"{"enum":["trace","debug","info","notice","warning","error","critical"]}"#
        case .backend: #"{"type":"string","description":"the name of a backend"}"#
        case .directory: #"{"type":"string","description":"the absolute path of a directory on the daemon's machine"}"#
        case .dryRun: #"{"type":"boolean","description":"true: nothing is changed"}"#
        case .sizes: #"{"type":"boolean","description":"true: how long ids and items are together"}"#
        case .histograms: #"{"type":"boolean","description":"true: times by ranges that are at most 1.6 % wide"}"#
        case .increment: Self.schema(ofOperands: "number", "what is added to the number at each path")
        case .minimum: Self.schema(ofOperands: "number", "what the number at each path is at most")
        case .maximum: Self.schema(ofOperands: "number", "what the number at each path is at least")
        case .append: Self.schema(ofOperands: "array", "what is appended to the array at each path")
        case .add: Self.schema(ofOperands: "array", "what is appended to the array at each path unless it is there")
        case .remove: Self.schema(ofOperands: "array", "what is removed from the array at each path")
        }
    }

    private static func schema(ofOperands type: String, _ description: String) -> String {
        #"{"type":"object","additionalProperties":{"type":"\#(type)"},"description":"\#(description)"}"#
    }

    private static func ttlSchema(takesNull: Bool) -> String {
        let range = #""exclusiveMinimum":0,"maximum":\#(DefaultLimits.ttlSeconds)"#
        let description = "after how many seconds the record expires"
        return takesNull
            ? #"{"type":["number","null"],\#(range),"description":"\#(description); null: never"}"#
            : #"{"type":"number",\#(range),"description":"\#(description)"}"#
    }

    /// Its bit in a set of parameters.
    package var mask: UInt64 { 1 << UInt64(rawValue) }

    /// How many there are.
    package static let count = allCases.count
}
