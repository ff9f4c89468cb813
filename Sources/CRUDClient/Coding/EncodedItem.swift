import CRUDModel
import CRUDWire

/// An item, or a patch of one, as JSON text: what a value's own coding makes of it, and what a ``RecordStore`` keeps and
/// hands out where it does not know the type.
public struct EncodedItem: Sendable {
    /// The JSON text, in UTF-8.
    package let bytes: [UInt8]

    /// The text of `value`: dates are RFC 3339 in UTC, data is base64.
    ///
    /// - Throws: an `EncodingError` as it comes from the value's coding.
    public init(_ value: some Encodable) throws {
        bytes = try ItemCoding.text(of: value)
    }

    /// An item from its text.
    ///
    /// - Throws: ``CRUDError/Code/parseError`` if `json` is not one JSON value.
    public init(json: String) throws {
        let bytes = Array(json.utf8)
        try RawJSON.check(bytes, what: "the item")
        self.bytes = bytes
    }

    /// An item from text that is known to be JSON.
    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The JSON text.
    public var json: String { String(decoding: bytes, as: UTF8.self) }

    /// The value that the text stands for.
    ///
    /// - Throws: a `DecodingError` where it is no `Value`.
    public func decoded<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        try ItemCoding.item(as: type, from: bytes)
    }
}
