package import CRUDModel

/// A request to drop a collection, which is executed while no event loop uses the collection.
package final class DropRequest: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package let collection: [UInt8]
    /// Whether the collection must not have a record.
    package let requiresEmpty: Bool
    /// Whether only what its moves have left behind is to be dropped.
    package let isOfOriginals: Bool
    /// Whether it was there.
    package private(set) var dropped = false

    package init(
        of collection: [UInt8], requiresEmpty: Bool, isOfOriginals: Bool = false,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.collection = collection
        self.requiresEmpty = requiresEmpty
        self.isOfOriginals = isOfOriginals
        super.init(deliver: deliver)
    }

    override var isWrite: Bool { true }

    /// Whether it is to be executed: somebody waits for it still.
    package func begin() -> Bool { claim() }

    /// Delivers it.
    ///
    /// - Parameter outcome: whether the collection was there, or why it has not been dropped.
    package func end(_ outcome: Result<Bool, CRUDError>) {
        switch outcome {
        case .success(let wasThere): dropped = wasThere
        case .failure(let error): failure = error
        }
        finish()
    }
}
