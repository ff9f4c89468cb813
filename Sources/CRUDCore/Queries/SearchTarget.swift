import CRUDPluginHost

/// The collection that a search goes through.
package struct SearchTarget: Sendable {
    let stored: BackendCollection
    let codec: Codec
    /// Whether the backend may be able to look into the records itself.
    let canAsk: Bool
    /// How long the text of an item may be.
    let maximumItemBytes: Int

    /// - Parameter maximumItemBytes: how long the text of an item may be.
    package init(_ collection: Collection, maximumItemBytes: Int) {
        stored = collection.stored
        codec = collection.codec
        canAsk = collection.codec.keepsText && collection.backend.capabilities.contains(.queries)
        self.maximumItemBytes = maximumItemBytes
    }
}
