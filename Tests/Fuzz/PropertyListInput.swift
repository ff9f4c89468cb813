import CRUDFormats
import CRUDModel

/// Stored property lists: what can be decoded is valid JSON, and the same again once it was encoded.
enum PropertyListInput {
    private static let maximumBytes = 1 << 20

    static func parse(_ input: Span<UInt8>) {
        for format in [CollectionRule.Format.xml, .plist] {
            guard let item = decoded(input, format) else { continue }
            requireJSON(item.span, "an item")
            for format in [CollectionRule.Format.xml, .plist] {
                var stored: [UInt8] = []
                do throws(CRUDError) { try Codec(format).encode(item: item.span, into: &stored) } catch { continue }
                require(
                    stored.count <= Codec(format).maximumStoredBytes(ofItem: item.count), "a stored item is too long")
                require(decoded(stored.span, format) == item, "an item is not the same after \(format)")
            }
        }
    }

    private static func decoded(_ stored: Span<UInt8>, _ format: CollectionRule.Format) -> [UInt8]? {
        var item: [UInt8] = []
        do throws(CRUDError) {
            try Codec(format).decode(stored: stored, into: &item, maximumBytes: maximumBytes)
        } catch {
            return nil
        }
        require(item.count <= maximumBytes, "an item is longer than it may be")
        return item
    }
}
