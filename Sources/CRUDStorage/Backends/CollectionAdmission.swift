package import CRUDModel

/// Asked on the writer's thread before a collection is created, and when one is opened for clients that has been
/// found; returns why it must not be used.
package typealias CollectionAdmission =
    @Sendable (_ collection: BackendCollection, _ isNew: Bool, _ creator: CollectionCreator?) -> CRUDError?

/// Asked on the writer's thread before an atomic batch creates several collections; returns why it must not, in which
/// case it creates none of them.
package typealias CollectionCreationCheck =
    @Sendable (_ collections: [BackendCollection], _ creator: CollectionCreator?) -> CRUDError?
