package import CRUDJSON

/// A member of `params`. Members of one name mean the same in every method.
package enum Parameter: Int, CaseIterable, Sendable {
    case collection, id, item, ids, fields, ifRevision, client, protocolVersion, force

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
        }
    }

    /// The kind of JSON value that it must be; nil for any. `true` stands for `false` too.
    package var kind: JSONKind? {
        switch self {
        case .collection, .id, .ifRevision, .client: .string
        case .ids, .fields: .array
        case .protocolVersion: .number
        case .force: .true
        case .item: nil
        }
    }

    /// Its JSON Schema, as text.
    var schema: String {
        switch self {
        case .collection:
            #"{"type":"string","minLength":1,"description":"1 to 128 bytes of UTF-8, no control characters"}"#
        case .id: #"{"type":"string","minLength":1,"description":"1 to 512 bytes of UTF-8, no control characters"}"#
        case .item: #"{"description":"any JSON value"}"#
        case .ids: #"{"type":"array","items":{"type":"string","minLength":1}}"#
        case .fields: #"{"type":"array","items":{"type":"string"},"description":"property paths"}"#
        case .ifRevision: #"{"type":"string","maxLength":64}"#
        case .client: #"{"type":"string","description":"who is calling, for the log"}"#
        case .force: #"{"type":"boolean"}"#
        case .protocolVersion: #"{"type":"integer","description":"the protocol version that the client speaks"}"#
        }
    }

    /// Its bit in a set of parameters.
    package var mask: UInt32 { 1 << UInt32(rawValue) }

    /// How many there are.
    package static let count = allCases.count
}
