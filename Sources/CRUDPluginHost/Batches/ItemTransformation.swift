package import CRUDModel

/// Makes the item that a mutation stores from the one that is there: a patch, say. What items are the host's plugins do
/// not know; whoever makes the mutation does.
///
/// It is called on the backend's writing thread, once or, where somebody else has changed the record meanwhile, again.
package protocol ItemTransformation: AnyObject, Sendable {
    /// - Parameter item: the stored bytes of the current item; nil: there is no record.
    /// - Throws: why the mutation is not made.
    func transform(_ item: [UInt8]?) throws(CRUDError) -> TransformedItem
}

/// What an ``ItemTransformation`` has made.
package struct TransformedItem: Sendable {
    /// The bytes to store.
    package var stored: [UInt8]
    /// What whoever asked for the mutation is to be shown, where that is something else.
    package var shown: [UInt8]?

    package init(stored: [UInt8], shown: [UInt8]? = nil) {
        self.stored = stored
        self.shown = shown
    }
}
