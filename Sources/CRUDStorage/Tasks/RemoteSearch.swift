import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDQuery

/// A search that is executed next to the plugin, in a child.
final class RemoteSearch: SearchExecution {
    private var task: RemoteTask
    private(set) var result: [UInt8] = []

    init(_ request: SearchRequest, in collection: BackendCollection, _ backend: Backend, number: Int, of child: Child) {
        task = RemoteTask(request, request.kind == .query ? .query : .count, collection, backend, number, child)
    }

    func advance(with reader: SnapshotReader, isAbandoned: @escaping () -> Bool) throws(CRUDError) -> Bool {
        let slice = try task.advance()
        guard slice.isDone else { return false }
        let text = slice.result
        var scanner = JSONScanner()
        // What a child sends must not get into a frame unread.
        guard (try? scanner.document(text.span))?.kind == .object else {
            throw CRUDError(.internalError, "the child's result is not valid JSON")
        }
        result = text
        return true
    }

    func end() { task.end() }
}

/// The matches of a bulk delete, found next to the plugin.
final class RemoteMatches: MatchExecutor {
    private var task: RemoteTask
    private var batch = MatchBatch()
    private var resumption: Int?

    init(_ request: SearchRequest, in collection: BackendCollection, _ backend: Backend, number: Int, of child: Child) {
        task = RemoteTask(request, .matching, collection, backend, number, child)
    }

    var found: [(id: [UInt8], revision: [UInt8])] { batch.found }
    private(set) var corrupt: [[UInt8]] = []

    func find(with reader: SnapshotReader, isAbandoned: @escaping () -> Bool) throws(CRUDError) -> Bool {
        let slice = try task.advance(from: resumption.take())
        guard let batch = MatchBatch(json: slice.result) else {
            throw CRUDError(.internalError, "the child's list of records cannot be decoded")
        }
        self.batch = batch
        corrupt = batch.corrupt
        return slice.isDone
    }

    func rewind(to position: Int) { resumption = position }

    func end() { task.end() }
}

/// A search that a child executes, by its number there.
private struct RemoteTask {
    private let search: ChildSearch
    private let backend: Backend
    private let child: Child
    private let indexes: IndexGeneration
    /// nil where the child has no such search, as before the first slice.
    private var number: Int?

    init(
        _ request: SearchRequest, _ kind: ChildSearch.Kind, _ collection: BackendCollection, _ backend: Backend,
        _ number: Int, _ child: Child
    ) {
        var writer = JSONWriter()
        request.query.write(to: &writer)
        search = ChildSearch(
            kind, in: number, query: writer.bytes, indexes: (collection.indexes?.usable ?? []).map(\.number),
            maximumBytes: request.maximumBytes, maximumItemBytes: request.maximumItemBytes, timeout: request.timeout)
        self.backend = backend
        self.child = child
        indexes = IndexGeneration(of: collection)
    }

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
            throw backend.report(error, during: "search")
        }
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
