package import CRUDModel
package import CRUDStorage

/// Something that changes where collections are, executed by the ``PlacementExecutor``.
package protocol PlacementChange {
    /// The collections whose requests wait meanwhile; nil: none has to.
    var scope: QuiescedCollections? { get }
    /// How long they may wait for what is in flight.
    var timeout: Duration { get }

    /// Does what has to come before the change, with the scope quiesced and drained.
    func prepare() throws(CRUDError)
    /// What is to become of the placements.
    func transitions(_ catalog: Catalog) throws(CRUDError) -> [Catalog.Transition]
    /// The storages that are to be remembered with that.
    var storages: [String: CatalogStorage] { get }
    /// The change is recorded; the scope still waits.
    func committed()
    /// The change has not happened: undoes what `prepare` has done, and nothing else.
    func undo()
    /// Has the scope served as the catalog says.
    func serve(_ loops: any ServingLoops)
}

extension PlacementChange {
    package var storages: [String: CatalogStorage] { [:] }
    package func undo() {}
    package func serve(_ loops: any ServingLoops) {
        if scope != nil { loops.serveQuiesced() }
    }
}

/// The event loops, as far as placements concern them.
package protocol ServingLoops: Sendable {
    /// Has the requests of these collections wait in every loop.
    ///
    /// - Returns: the backends that may have requests of them in their queues; nil if it takes longer than `timeout`.
    func quiesce(_ collections: QuiescedCollections, within timeout: Duration) -> [Backend]?

    /// Has the requests that wait resume where their collections are now.
    func serveQuiesced()
}
