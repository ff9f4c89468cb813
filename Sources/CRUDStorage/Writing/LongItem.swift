import CRUDFormats
package import CRUDJSON
package import CRUDModel

/// A long item of a collection whose format is not JSON: another thread encodes it, for the event loop must not be kept
/// busy that long.
package final class LongItem: ItemTransformation {
    private let text: [UInt8]
    private let collection: BackendCollection

    /// Items are encoded on the loop up to this length.
    package static let leastBytes = 64 << 10

    /// The most that is done with an item on the loop: it is read and written, and its members are found.
    package static var shortWork: Work { Work(atMost: 4 * leastBytes) }

    /// - Parameter text: JSON text in normal form.
    package init(_ text: [UInt8], in collection: BackendCollection) {
        self.text = text
        self.collection = collection
    }

    package var keepsExpiry: Bool { false }
    package var byteCount: Int { text.count }

    /// - Throws: `unsupported` where the format cannot hold the item.
    package func transform(_ item: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem {
        let text = text
        var encoded: [UInt8] = []
        try collection.codec.encode(item: text.span, into: &encoded, &work)
        return TransformedItem(stored: encoded, keys: collection.keys(of: text.span, &work))
    }
}
