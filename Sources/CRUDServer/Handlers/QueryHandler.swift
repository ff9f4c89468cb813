import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDQuery
import CRUDStorage
import CRUDWire

/// The methods that look for records by what is in them: `record.query`, `record.count` and `record.deleteMatching`.
final class QueryHandler {
    private let loop: LoopState

    init(_ loop: LoopState) {
        self.loop = loop
    }

    func query(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard call.wantsReply else { return }
        var query = try selection(call)
        if let sort = call[.sort] { query.sort = try SortOrder(json: call.text.span.extracting(sort.range)) }
        query.limit = try limit(call)
        query.fields = try call.fields
        query.explains = call.isTrue(.explain)
        if let cursor = call[.cursor] { try query.resume(from: call.decode(cursor), in: collection.name) }
        submit(.query, query, call, collection)
    }

    func count(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard call.wantsReply else { return }
        let query = try selection(call)
        if query.filter == nil {
            // No record needs to be looked into.
            PendingRead(call, .read, on: collection).submit(countWithPrefix: query.prefix, in: collection)
        } else {
            submit(.count, query, call, collection)
        }
    }

    func deleteMatching(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        let isSelective = call[.filter] != nil || call[.prefix] != nil
        let meansAll = call.isTrue(.all)
        guard isSelective || meansAll else {
            throw Parameter.filter.invalid("or `prefix` is missing; `all: true` means every record")
        }
        guard !isSelective || !meansAll else { throw Parameter.all.invalid("goes with neither `filter` nor `prefix`") }
        let request = request(.count, try selection(call), call)
        let pending = PendingDeletion(call, .bulkDelete, on: collection)
        pending.start()
        collection.client.submit(
            BulkDelete(of: request, in: collection.stored, deliver: collection.client.deliver), for: pending)
    }

    // MARK: Parameters

    /// What `filter` and `prefix` say.
    private func selection(_ call: borrowing Call) throws(CRUDError) -> Query {
        var query = Query()
        if let filter = call[.filter] {
            query.filter = try Filter(cql2JSON: call.text.span.extracting(filter.range))
        }
        if let prefix = call[.prefix] { query.prefix = call.decode(prefix) }
        return query
    }

    private func limit(_ call: borrowing Call) throws(CRUDError) -> Int {
        let maximum = loop.limits.queryLimit
        let text = call.text.span
        guard let limit = call[.limit] else { return min(DefaultLimits.pageRecords, maximum) }
        if text[limit.start] == UInt8(ascii: "-") || limit.integer(text) == 0 {
            throw Parameter.limit.invalid("must be at least 1")
        }
        guard let count = limit.integer(text), count <= maximum else {
            throw .limit("query_limit", maximum, "`limit` is over \(maximum)")
        }
        return count
    }

    // MARK: Searches

    private func submit(
        _ kind: SearchRequest.Kind, _ query: Query, _ call: borrowing Call, _ collection: Collection
    ) {
        let pending = PendingSearch(call, .read, on: collection)
        pending.start()
        collection.client.submit(
            SearchTask(request(kind, query, call), in: collection.stored, deliver: collection.client.deliver),
            for: pending)
    }

    private func request(_ kind: SearchRequest.Kind, _ query: Query, _ call: borrowing Call) -> SearchRequest {
        let limits = loop.limits
        return SearchRequest(
            kind, query,
            maximumBytes: call.room(limits) - StreamBuffer.responseBytesWithoutItem
                - (call.request.id?.count ?? 0),
            maximumItemBytes: limits.frameBytes, timeout: limits.requestTimeout / 2)
    }
}

/// A search in flight.
private final class PendingSearch: PendingRequest {
    override func reply(with item: WorkItem, _ range: Range<Int>) {
        guard let task = item as? SearchTask else { return }
        let result = task.result
        reply { $0.append(result.span) }
    }
}

/// A `record.deleteMatching` in flight.
private final class PendingDeletion: PendingRequest {
    override func reply(with item: WorkItem, _ range: Range<Int>) {
        guard let task = item as? BulkDelete else { return }
        reply { output in
            output.appendObject { result in
                result.member("deleted", task.count)
                guard !task.corrupt.isEmpty else { return }
                result.key("corrupt")
                result.array { ids in for id in task.corrupt { ids.string(utf8: id) } }
            }
        }
    }
}
