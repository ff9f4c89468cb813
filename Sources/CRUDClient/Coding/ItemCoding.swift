import CRUDModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encodes an application's values as the JSON text of items, and decodes them.
///
/// Dates are RFC 3339 in UTC, data is base64, and numbers have the precision of their Swift type.
package enum ItemCoding {
    // Neither is changed after its creation, so that any thread may use them.
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        encoder.dateEncodingStrategy = .custom { date, encoder in
            guard let text = RFC3339.text(of: date) else {
                throw EncodingError.invalidValue(
                    date,
                    EncodingError.Context(
                        codingPath: encoder.codingPath, debugDescription: "RFC 3339 has years from 0000 to 9999 only."))
            }
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
        return encoder
    }()

    private static let decoder: JSONDecoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let date = RFC3339.date(from: try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "A date must be RFC 3339 text, such as 2026-01-31T12:00:00Z.")
            }
            return date
        }
        return decoder
    }()

    /// The JSON text of `item`.
    package static func text(of item: some Encodable) throws -> [UInt8] {
        [UInt8](try encoder.encode(item))
    }

    /// The value that is decoded from JSON text.
    package static func item<Item: Decodable>(as type: Item.Type = Item.self, from text: some Sequence<UInt8>) throws
        -> Item
    {
        if type == ItemText.self, let text = ItemText(bytes: Array(text)) as? Item { return text }
        return try decoder.decode(type, from: Data(text))
    }
}
