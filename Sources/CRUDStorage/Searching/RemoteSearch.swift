import CRUDJSON
import CRUDModel
import CRUDPluginHost

/// A search that is executed next to the plugin, in a child.
final class RemoteSearch: SearchExecution {
    private var task: RemoteTask
    private(set) var result: [UInt8] = []

    init(
        _ request: SearchRequest, in collection: BackendCollection, number: Int, of child: Child,
        _ failures: FailureReporter
    ) {
        task = RemoteTask(request, request.kind == .query ? .query : .count, collection, number, child, failures)
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
