import CRUDJSON
import CRUDModel
import CRUDPluginKit

/// A query being carried out on a reader's connection.
///
/// Whatever way leads to records, each is decided about by its item alone (``RecordFilter``), and the page is sorted by
/// what the items say (``FoundRecords``). An index saves looking at others, and settles early what comes first.
struct Query: ~Copyable {
    private let session: ReadSession
    private let collection: SQLiteCollection
    private let order: SortOrder
    private let after: SortPosition?
    private let ids: IDRange
    private let filter: Filter?
    private var records: RecordFilter
    private var found: FoundRecords
    private var emitted = 0
    /// The page is full, or the host has had enough.
    private var isDone = false

    init(
        _ request: borrowing QueryRequest, _ session: ReadSession, _ collection: SQLiteCollection
    ) throws(StorageFailure) {
        let terms = try Self.terms(request)
        let prefix = IDRange(after: emptyBytes, prefix: request.prefix)
        var ids = prefix
        if let after = terms.after, terms.order.keys.isEmpty, prefix.contains(after.id) { ids = prefix.after(after.id) }
        records = try RecordFilter(terms.filter, terms.order, after: terms.after, ids, collection)
        self.session = session
        self.collection = collection
        self.ids = ids
        (filter, order, after) = terms
        found = FoundRecords(terms.order, limit: request.limit)
    }

    private static func terms(
        _ request: borrowing QueryRequest
    ) throws(StorageFailure) -> (filter: Filter?, order: SortOrder, after: SortPosition?) {
        do throws(CRUDError) {
            let filter = request.filter.isEmpty ? nil : try Filter(cql2JSON: Span(_bytes: request.filter.bytes))
            let order = request.sort.isEmpty ? SortOrder() : try SortOrder(json: Span(_bytes: request.sort.bytes))
            if request.after.isEmpty { return (filter, order, nil) }
            let after = try SortPosition(json: Span(_bytes: request.after.bytes), count: order.keys.count)
            return (filter, order, after)
        } catch {
            throw StorageFailure(.unsupported, error.message)
        }
    }

    mutating func run(_ request: borrowing QueryRequest) throws(StorageFailure) {
        var path: PropertyPath?
        switch try QueryPlanner(session, collection, filter).access(for: order) {
        case .primaryKey where order.keys.isEmpty: try walkByID(request)
        case .primaryKey: try walkAll(request)
        case .ranges(let index, let ranges):
            path = index.path
            try walk(ranges, index, request)
        case .inOrder(let index, let range):
            path = index.path
            try walkInOrder(index, range, request)
        }
        request.report(index: path?.text, scanned: records.scanned)
    }

    // MARK: Without an index

    /// Emits by id as it goes.
    private mutating func walkByID(_ request: borrowing QueryRequest) throws(StorageFailure) {
        let row = try session.statement(.scan, collection)
        defer { row.reset() }
        try session.bind(ids, row)
        try session.check(row.bind(3, integer: -1))
        while !isDone, try session.step(row) {
            if try records.position(row, request) != nil { try emit(row, request) }
        }
    }

    /// Finds the first of all.
    private mutating func walkAll(_ request: borrowing QueryRequest) throws(StorageFailure) {
        let row = try session.statement(ids.isUnbounded ? .all : .ids, collection, nil)
        defer { row.reset() }
        if !ids.isUnbounded { try session.bind(ids, row) }
        while try session.step(row) { try find(row, request) }
        try settle(request) { _ in true }
    }

    // MARK: Ranges of an index

    private mutating func walk(
        _ ranges: [IndexRange], _ index: PropertyIndex, _ request: borrowing QueryRequest
    ) throws(StorageFailure) {
        // Inexact runs may overlap, and a record must be found once.
        var seen: Set<Int64> = []
        for range in ranges {
            guard let run = range.inexactRun else { continue }
            let row = try session.start(run, collection, index, ids)
            defer { row.reset() }
            while try session.step(row) {
                if ranges.count > 1, !seen.insert(row.integer(0)).inserted { continue }
                try find(row, request)
            }
        }
        let isInOrder = order.keys.isEmpty && ranges.count == 1 && ranges[0].isPoint
        for range in ranges where !isDone {
            if isInOrder {
                try walkGroup(range.run, index, settles: true, request)
            } else {
                let row = try session.start(range.run, collection, index, ids)
                defer { row.reset() }
                while try session.step(row) { try find(row, request) }
            }
        }
        try settle(request) { _ in true }
    }

    /// Goes through the entries of one key by id.
    ///
    /// - Parameter settles: whether that is the order, and nothing that is not found yet comes before any of them.
    private mutating func walkGroup(
        _ run: IndexRange.Run, _ index: PropertyIndex, settles: Bool, _ request: borrowing QueryRequest
    ) throws(StorageFailure) {
        var ids = ids
        if settles, let after, let value = after.values.first, run.sortValue?.compare(with: value) == 0,
            ids.contains(after.id)
        {
            ids = ids.after(after.id)
        }
        let row = try session.start(run, collection, index, ids)
        defer { row.reset() }
        while !isDone, try session.step(row) {
            guard let position = try find(row, request), settles else { continue }
            let order = order
            try settle(request) { order.compare($0, position) <= 0 }
        }
    }

    // MARK: Along an index

    private mutating func walkInOrder(
        _ index: PropertyIndex, _ range: IndexRange?, _ request: borrowing QueryRequest
    ) throws(StorageFailure) {
        let walk = IndexWalk(order, after, range)
        for part in walk.parts where !isDone {
            if let inexact = part.inexactRun {
                try walkValues(walk, KeyCursor(part.run), KeyCursor(inexact), index, request)
            } else {
                try walkGroup(part.run, index, settles: walk.isOnlyKey, request)
            }
            try settle(request) { _ in true }
        }
    }

    /// Goes through numbers or strings, key by key: exact ones, and those that are not and may come a little earlier or
    /// later than their keys say. These are looked at as soon as one of them may be next, and held until nothing else can
    /// come before.
    private mutating func walkValues(
        _ walk: IndexWalk, _ exact: consuming KeyCursor, _ inexact: consuming KeyCursor, _ index: PropertyIndex,
        _ request: borrowing QueryRequest
    ) throws(StorageFailure) {
        try advance(&exact, walk, index)
        try advance(&inexact, walk, index)
        while !isDone {
            let earliest = inexact.key.map(walk.earliest)
            if let value = exact.point?.sortValue, earliest.map({ walk.isBefore(value, $0) }) ?? true {
                try settle(request) { walk.isBefore($0.values[0], value) }
                if let point = exact.point { try walkGroup(point, index, settles: walk.isOnlyKey, request) }
                try advance(&exact, walk, index)
            } else if let point = inexact.point, let earliest {
                try settle(request) { walk.isBefore($0.values[0], earliest) }
                try walkGroup(point, index, settles: false, request)
                try advance(&inexact, walk, index)
            } else {
                return
            }
        }
    }

    private func advance(
        _ cursor: inout KeyCursor, _ walk: IndexWalk, _ index: PropertyIndex
    ) throws(StorageFailure) {
        let row = try session.statement(cursor.statement(isDescending: walk.isDescending), collection, index)
        defer { row.reset() }
        try session.bind(cursor.rest(isDescending: walk.isDescending), row)
        cursor.advance(to: try session.step(row) ? IndexKey(row, 0) : nil)
    }

    // MARK: The page

    /// Notes the row's record if it is wanted, and says where it stands.
    @discardableResult
    private mutating func find(
        _ row: Statement, _ request: borrowing QueryRequest
    ) throws(StorageFailure) -> SortPosition? {
        guard let position = try records.position(row, request) else { return nil }
        found.insert(position, row: row.integer(0))
        return position
    }

    /// Emits what has been found and nothing can come before any more.
    private mutating func settle(
        _ request: borrowing QueryRequest, _ isSettled: (SortPosition) -> Bool
    ) throws(StorageFailure) {
        while !isDone, let rowID = found.takeFirst(isSettled) {
            let row = try session.statement(.record, collection, nil)
            defer { row.reset() }
            try session.check(row.bind(1, integer: rowID))
            // The read transaction shows the same rows throughout.
            if try session.step(row) { try emit(row, request) }
        }
    }

    /// Emits a row: revision, item, id.
    private mutating func emit(_ row: Statement, _ request: borrowing QueryRequest) throws(StorageFailure) {
        let id = try storedID(row, collection)
        let revision = try storedRevision(row, collection)
        let item = try request.wantsItems ? storedItem(row, collection) : emptyBytes
        let goesOn = request.emit(emitted, id: id.bytes, item: item.bytes, revision: revision.bytes)
        emitted += 1
        isDone = !goesOn || emitted == request.limit
    }
}
