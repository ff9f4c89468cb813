import CRUDModel
import Glibc

extension PlacementControl {
    /// Waits until feeds have begun anew in the places that are to be served from now on (``Placement/beginsFeed``),
    /// but no longer.
    ///
    /// - Parameter names: of collections; nil: all.
    /// - Returns: the names of those that are not served yet, sorted.
    package func awaitFeeds(of names: [[UInt8]]? = nil, within timeout: Duration) -> [[UInt8]] {
        let deadline = ContinuousClock.now + timeout
        var waiting = names ?? Array(catalog.restless)
        while true {
            waiting.removeAll { !catalog.entry($0).placement.beginsFeed }
            if waiting.isEmpty || deadline < .now { return waiting.sorted { $0.lexicographicallyPrecedes($1) } }
            poll(nil, 0, Self.feedPauseMilliseconds)
        }
    }

    private static let feedPauseMilliseconds: Int32 = 2

    /// What is said of a collection that is not served yet.
    package static func closedText(of name: [UInt8]) -> String {
        "collection \(quoted(name)) is not served before its new feed of changes has begun"
    }
}
