package import CRUDJSON
package import CRUDModel

/// Leaves the item as it is stored: its mutation determines when the record expires, and nothing else.
package final class Touch: ItemTransformation {
    private let collection: BackendCollection
    package let keepsExpiry = false
    package func takesLong(of item: [UInt8]?) -> Bool { collection.takesLong(of: item, byteCount) }

    package init(in collection: BackendCollection) {
        self.collection = collection
    }

    /// - Throws: `corrupt` where the item, of which index keys are made, cannot be decoded.
    package func transform(_ stored: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem {
        let stored = stored ?? []
        let numbered = collection.numberedLayout
        guard !numbered.layout.indexPaths.isEmpty else { return TransformedItem(stored: stored) }
        var keys = RecordKeys(numbered.layout.indexPaths)
        guard let made = keys.keys(ofStored: stored.span, collection.codec, &work) else {
            if work.isStopped { throw .stopped }
            throw CRUDError(.corrupt, "the stored item cannot be decoded")
        }
        return TransformedItem(stored: stored, keys: IndexKeys(made, layout: numbered.number))
    }
}
