import CRUDModel

/// Writing that may take long, on the thread that writes.
package class WriteTask: SlicedTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    override final var isWrite: Bool { true }

    /// Whether it writes the collection of that name and format.
    func writes(_ key: BackendCollection.Key) -> Bool { collection.key == key }

    /// Executes one slice; true when there is nothing left to do.
    func advance(with storage: OpenStorage) -> Bool { true }
}
