/// The user whose write creates a collection, which it then owns.
package struct CollectionCreator: Sendable {
    package var uid: UInt32
    /// How many collections the user may own; nil: any number.
    package var maximumCollections: Int?

    package init(uid: UInt32, maximumCollections: Int? = nil) {
        self.uid = uid
        self.maximumCollections = maximumCollections
    }
}
