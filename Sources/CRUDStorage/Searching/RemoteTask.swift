import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDQuery

/// A search that a child executes, by its number there.
struct RemoteTask {
    private let search: ChildSearch
    private let child: Child
    private let failures: FailureReporter
    private let indexes: IndexGeneration
    /// nil where the child has no such search, as before the first slice.
    private var number: Int?
    /// When to ask the child again, which waits for a thread of its own; nil: at once.
    private var pauseEnd: ContinuousClock.Instant?
    private var pause = Self.shortestPause

    /// How long a child is not asked that waits: longer each time.
    private static let shortestPause = Duration.milliseconds(2)
    private static let longestPause = Duration.milliseconds(64)

    init(
        _ request: SearchRequest, _ kind: ChildSearch.Kind, _ collection: BackendCollection, _ number: Int,
        _ child: Child, _ failures: FailureReporter
    ) {
        var writer = JSONWriter()
        request.query.write(to: &writer)
        search = ChildSearch(
            kind, in: number, query: writer.bytes, indexes: (collection.indexes?.usable ?? []).map(\.number),
            maximumBytes: request.maximumBytes, maximumItemBytes: request.maximumItemBytes, timeout: request.timeout)
        self.child = child
        self.failures = failures
        indexes = IndexGeneration(of: collection)
    }

    /// Whether the child would have nothing to say.
    var isWaiting: Bool { pauseEnd.map { ContinuousClock.now < $0 } ?? false }

    /// Has the child execute a slice.
    mutating func advance(from record: Int? = nil) throws(CRUDError) -> ChildSearch.Slice {
        try indexes.check()
        let slice: ChildSearch.Slice
        do throws(PluginFailure) {
            slice =
                if let number = number.take() { try child.continueSearch(number, from: record) } else {
                    try child.search(search)
                }
        } catch {
            try indexes.check()
            throw failures.report(error, during: "search")
        }
        pauseEnd = slice.isWaiting ? .now + pause : nil
        pause = slice.isWaiting ? min(pause * 2, Self.longestPause) : Self.shortestPause
        if slice.error == nil, !slice.isDone || search.kind == .matching { number = slice.task }
        try indexes.check()
        if let error = slice.error { throw error }
        return slice
    }

    /// Has the child forget the search.
    mutating func end() {
        if let number = number.take() { child.endSearch(number) }
    }
}
