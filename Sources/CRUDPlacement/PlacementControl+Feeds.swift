package import CRUDModel
package import CRUDStorage

extension PlacementControl {
    /// Ends the feeds in places from which collections are to be served without having been copied there, such as those
    /// of originals: cursors may have been moved on from there, and other changes have the same numbers. Their indexes
    /// are built anew.
    ///
    /// - Parameters:
    ///   - transitions: what is going to be recorded.
    ///   - rules: those that are going to be in force.
    ///   - backends: those that are going to serve.
    /// - Throws: where a backend cannot do that now; then the transitions must not be recorded.
    package func endFeeds(
        of transitions: [Catalog.Transition], by rules: CollectionRules, in backends: [Backend]
    ) throws(CRUDError) {
        for transition in transitions {
            guard let place = transition.placement.authority,
                place != catalog.entry(transition.name).placement.authority,
                rules.rule(for: transition.name.span)?.remembersChanges == true,
                let backend = backends.first(where: { $0.name == place.backend })
            else { continue }
            try backend.beginAnew(transition.name, place.format, within: .seconds(10))
        }
    }
}
