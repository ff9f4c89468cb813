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
        guard call.wantsReply else { return call.skip() }
        guard !loop.hasEndedSearches else { throw .draining }
        var query = try selection(call)
        if let sort = call[.sort] { query.sort = try SortOrder(json: call.text.span.extracting(sort.range)) }
        query.limit = try limit(call)
        query.fields = try call.fields
        query.explains = call.isTrue(.explain)
        if let cursor = call[.cursor] { try query.resume(from: call.decode(cursor), in: collection.name) }
        submit(.query, query, call, collection)
    }

    func count(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        guard call.wantsReply else { return call.skip() }
        guard !loop.hasEndedSearches else { throw .draining }
        let query = try selection(call)
        if query.filter == nil {
            // No record needs to be looked into.
            PendingRead(call, .scan, on: collection).submit(countWithPrefix: query.prefix, in: collection)
        } else {
            submit(.count, query, call, collection)
        }
    }

    func deleteMatching(_ call: borrowing Call, _ collection: Collection) throws(CRUDError) {
        let query = try selection(call)
        if !call.isTrue(.all) {
            try BulkDeletionRule.check(filter: query.filter, prefix: query.prefix)
        } else if call[.filter] != nil || call[.prefix] != nil {
            throw Parameter.all.invalid("goes with neither `filter` nor `prefix`")
        }
        let request = request(.count, query, call)
        let pending = PendingDeletion(call, query.filter, on: collection)
        pending.start()
        collection.client.submit(
            BulkDelete(of: request, in: collection.stored, deliver: collection.client.deliver), for: pending)
    }

    // MARK: Parameters

    /// What `filter` and `prefix` say.
    func selection(_ call: borrowing Call) throws(CRUDError) -> Query {
        try QueryNodes.check(call)
        var query = Query()
        if let filter = call[.filter] {
            query.filter = try Filter(cql2JSON: call.text.span.extracting(filter.range))
        }
        if let prefix = call[.prefix] { query.prefix = call.decode(prefix) }
        return query
    }

    func limit(_ call: borrowing Call) throws(CRUDError) -> Int {
        let maximum = loop.limits.queryLimit
        guard let count = try call.limit else { return min(DefaultLimits.pageRecords, maximum) }
        guard count <= maximum else {
            throw .limit("query_limit", maximum, "`limit` is over \(maximum)")
        }
        return count
    }

    // MARK: Searches

    /// How much room a page is given at least.
    static let leastPageBytes = 256 << 10

    private func submit(
        _ kind: SearchRequest.Kind, _ query: Query, _ call: borrowing Call, _ collection: Collection
    ) {
        var request = request(kind, query, call)
        let maximumBytes = request.maximumBytes
        if kind == .query {
            request.maximumBytes = call.grant(pageOfAtLeast: Self.leastPageBytes, atMost: maximumBytes)
        }
        let pending = PendingSearch(call, request, on: collection, maximumBytes: maximumBytes)
        pending.start()
        pending.submit(in: collection)
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

/// A search in flight. A page ends where the room ends that it was given; where not even one record has found room, the
/// search begins again with more.
private final class PendingSearch: PendingRequest {
    private var request: SearchRequest
    private let maximumBytes: Int
    /// While it is replied to.
    private var task: SearchTask?
    override var search: SlowRequest.Search? { .init(request.query.filter, request.query.sort, task?.plan) }

    /// - Parameter maximumBytes: how long the result may be.
    init(_ call: borrowing Call, _ request: SearchRequest, on collection: Collection, maximumBytes: Int) {
        self.request = request
        self.maximumBytes = maximumBytes
        super.init(
            call, .scan, on: collection,
            replyBytes: request.kind == .query ? request.maximumBytes : StreamBuffer.responseBytesWithoutItem,
            chargedBytes: call.chargedBytesOfSelection)
    }

    func submit(in collection: Collection) {
        let client = collection.client
        let task = SearchTask(request, in: collection.stored, deliver: client.deliver)
        if client.store.searchNow(task, for: self) {
            session.spend(Self.workOnLoop)
        } else {
            client.submit(task, for: self)
        }
    }

    /// As how much work a search counts that the loop has executed itself.
    private static let workOnLoop = 32

    override func reply(with result: WorkResult) {
        guard case .found(let task) = result else { return super.reply(with: result) }
        let text = task.result
        self.task = task
        defer { self.task = nil }
        reply { $0.append(text.span) }
    }

    // MARK: Room

    /// Not even one record may have found room.
    override func bytesMissing(after error: CRUDError) -> Int {
        error.code == .limitExceeded ? bytesMissing(onPageOf: request.maximumBytes, atMost: maximumBytes) : 0
    }

    override func submitAgain(withRoomFor bytes: Int) {
        request.maximumBytes += bytes
        if let collection { submit(in: collection) }
    }
}

/// A `record.deleteMatching` in flight.
private final class PendingDeletion: PendingRequest {
    private let filter: Filter?
    /// How many records are known to be deleted.
    private var count = 0
    override var search: SlowRequest.Search? { .init(filter, returned: count) }
    override var audit: AuditEntry.Details? { .init(records: count) }

    init(_ call: borrowing Call, _ filter: Filter?, on collection: Collection) {
        self.filter = filter
        super.init(call, .slicedWrite, on: collection, chargedBytes: call.chargedBytesOfSelection)
    }

    override func reply(with error: CRUDError, isOverdue: Bool) {
        count = error.details.deleted ?? 0
        super.reply(with: error, isOverdue: isOverdue)
    }

    override func reply(with result: WorkResult) {
        guard case .deleted(let task) = result else { return super.reply(with: result) }
        count = task.count
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
