import CRUDConfiguration
import CRUDFormats
import CRUDStorage

// Writes whose items take long to make, see ``LongWrite``.

extension Collection {
    /// Whether it takes long to make the item of a write.
    ///
    /// - Parameter contentBytes: how long the item or the patch is, field operations included.
    func takesLong(isPatch: Bool, contentBytes: Int) -> Bool {
        contentBytes >= LongItem.leastBytes && (isPatch || !codec.keepsText)
    }
}

extension Configuration.Limits {
    /// How much is held for a long write beside its request and its reply: the current item, and the new one.
    var longWriteBytes: Int { 2 * itemBytes }
}
