import CRUDJSON
import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// A search that is executed next to the plugin, in a child.
final class RemoteSearch: SearchExecution {
    private var task: RemoteTask
    private(set) var result: [UInt8] = []
    private(set) var corrupt: [[UInt8]] = []
    var isWaiting: Bool { task.isWaiting }
    private(set) var plan: QueryPlan?

    init(
        _ request: SearchRequest, in collection: BackendCollection, number: Int, of child: Child,
        _ failures: FailureReporter
    ) {
        task = RemoteTask(request, request.kind == .query ? .query : .count, collection, number, child, failures)
    }

    func advance(
        with reader: SnapshotReader, isAbandoned: @escaping @Sendable () -> Bool
    ) throws(CRUDError) -> Bool {
        let slice = try task.advance()
        guard slice.isDone else { return false }
        // What a child sends must not get into a frame unread.
        guard let corrupt = try? Self.corruptRecords(in: slice.result.span) else {
            throw CRUDError(.internalError, "the child's result is not valid JSON")
        }
        self.corrupt = corrupt
        result = slice.result
        plan = QueryPlan(json: slice.plan.span)
        return true
    }

    /// The member `corrupt` of a result; nil if the result is not an object that may have one.
    private static func corruptRecords(in text: Span<UInt8>) throws(JSONSyntaxError) -> [[UInt8]]? {
        var scanner = JSONScanner()
        guard try scanner.peekKind(text) == .object else { return nil }
        var corrupt: [[UInt8]] = []
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            if key.equals("corrupt", text) {
                guard let ids = try scanner.strings(text) else { return nil }
                corrupt = ids
            } else {
                _ = try scanner.value(text)
            }
        }
        return scanner.isAtEnd(text) ? corrupt : nil
    }

    func end() { task.end() }
}
