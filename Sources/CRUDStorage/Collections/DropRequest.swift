package import CRUDModel

/// A request to drop a collection, which is executed while no event loop uses the collection.
package final class DropRequest: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package let collection: [UInt8]
    /// Whether the collection must not have a record.
    package let requiresEmpty: Bool
    /// Whether only what its moves have left behind is to be dropped.
    package let isOfOriginals: Bool
    package private(set) var outcome = Outcome(wasThere: false)

    /// What a drop that has not failed leaves.
    package struct Outcome: Sendable {
        /// Whether there was anything to be dropped: none of it is served any more, or ever will be.
        package var wasThere: Bool
        /// Where there is still something to be removed, and why it could not be removed so far.
        package var removing: [(place: CollectionPlace, reason: String?)]

        package init(wasThere: Bool, removing: [(place: CollectionPlace, reason: String?)] = []) {
            self.wasThere = wasThere
            self.removing = removing
        }
    }

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
    /// - Parameter result: what is left of it, or why it has not been dropped.
    package func end(_ result: Result<Outcome, CRUDError>) {
        switch result {
        case .success(let outcome): self.outcome = outcome
        case .failure(let error): failure = error
        }
        finish()
    }
}
