/// A request to rebuild a collection's indexes; it is done when the rebuild has begun.
package final class ReindexRequest: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    let collection: BackendCollection

    package init(of collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.collection = collection
        super.init(deliver: deliver)
    }
}
