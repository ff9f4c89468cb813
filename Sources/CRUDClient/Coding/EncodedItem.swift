import CRUDModel
import CRUDWire

/// An item, or a patch, as JSON text: the encoding of a value, and the form in which a ``RecordStore`` passes items
/// whose type it does not know.
public struct EncodedItem: Sendable {
    /// The JSON text, in UTF-8.
    package let bytes: [UInt8]

    /// The text of `value`: dates are RFC 3339 in UTC, data is base64.
    ///
    /// - Throws: the `EncodingError` of the value's encoding.
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

    /// An item from text that is known to be valid JSON.
    package init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// What is shown of an item if these fields are: `{}` for none, which the daemon leaves out; nil where it sends it.
    static func bare(_ fields: [PropertyPath]?) -> EncodedItem? {
        fields?.isEmpty == true ? EncodedItem(bytes: Array("{}".utf8)) : nil
    }

    /// The JSON text.
    public var json: String { String(decoding: bytes, as: UTF8.self) }

    /// The decoded value.
    ///
    /// - Throws: a `DecodingError` if it is not a `Value`.
    public func decoded<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        try ItemCoding.item(as: type, from: bytes)
    }
}
