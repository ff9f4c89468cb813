import CRUDModel
package import CRUDStorage

extension PlacementControl {
    /// Ends the feeds of earlier times in the places that are to be served from now on, as the catalog says
    /// (``Placement/beginsFeed``). Their indexes are built anew. What a backend cannot do now is left to the acts, and
    /// its collection is not served before that.
    ///
    /// - Parameters:
    ///   - backends: those that are going to serve.
    ///   - timeout: how long they may take together.
    package func beginFeeds(in backends: [Backend], within timeout: Duration) {
        let deadline = ContinuousClock.now + timeout
        var backends = Dictionary(uniqueKeysWithValues: backends.filter(\.isReady).map { ($0.name, $0) })
        var begun: [Catalog.Transition] = []
        for (name, entry) in catalog.restlessEntries where entry.placement.beginsFeed {
            guard let place = entry.placement.authority, let backend = backends[place.backend],
                case .to(let next) = entry.placement.next(.begunFeed(place))
            else { continue }
            do throws(CRUDError) {
                try beginAnew(name, in: place, of: backend, from: entry, within: deadline - .now)
                begun.append(Catalog.Transition(name, from: entry, to: next))
            } catch {
                // It is not asked for each of its collections while others wait.
                backends[place.backend] = nil
            }
        }
        do throws(CatalogError) {
            try catalog.commit(begun)
        } catch {
            noteDoubt(error)
        }
    }

    /// Has a collection begin anew in a place that is not served, unless its entry is another one by then: what has
    /// waited in the queue of a backend that hung must not end the feed of those who are served meanwhile.
    func beginAnew(
        _ name: [UInt8], in place: CollectionPlace, of backend: Backend, from entry: Catalog.Entry,
        within timeout: Duration
    ) throws(CRUDError) {
        try backend.beginAnew(name, place.format, within: timeout) { [catalog] in catalog.entry(name) == entry }
    }
}
