import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDQuery

/// Finds pages of a collection's changes.
///
/// A cursor is `DATABASE-SEQUENCE-START`: the changes up to SEQUENCE have been read. A follower that began at the start
/// is not told of deletions up to START, the last change at that time: it has never seen these records.
struct ChangeSearch: ~Copyable {
    private let collection: String
    /// Where the next page begins.
    private var after: Cursor
    private let limit: Int
    private let prefix: [UInt8]
    private var filter: FilterEvaluator?
    /// Of the projections; the filter has its own.
    private var work = Work()
    private let fields: FieldProjection?

    /// - Throws: `invalid_query` for a filter that cannot be evaluated, `limit_exceeded` for a wrong limit.
    init(_ query: ChangeQuery, in collection: String) throws(CRUDError) {
        let limit = query.limit ?? DefaultLimits.pageRecords
        try RequestCheck.limit(limit)
        let fields = try query.fields.map { fields throws(CRUDError) in try FieldProjection(fields) }
        filter = if let filter = query.selection.filter { try FilterEvaluator(filter) } else { nil }
        self.fields = fields
        self.limit = limit
        self.collection = collection
        after = query.after
        prefix = Array((query.selection.prefix ?? "").utf8)
    }

    /// The next page, which may be empty.
    ///
    /// - Throws: as ``RequestCheck/task()``, if the task's calls are over meanwhile.
    mutating func page(_ tables: Tables) throws -> ChangePage {
        let deadline = CRUDClient.deadline
        work = Work { RequestCheck.isOver(deadline: deadline) }
        filter?.work = Work { RequestCheck.isOver(deadline: deadline) }
        let place = try place(in: tables)
        let table = tables[collection]
        var changes: [Change<EncodedItem>.Kind] = []
        var reached = place
        for change in table.changes(after: place.sequence) {
            guard changes.count < limit else {
                after = cursor(tables, reached)
                return ChangePage(changes: changes, cursor: after, hasMore: true)
            }
            reached.sequence = change.sequence
            guard change.id.starts(with: prefix) else { continue }
            if let record = table[change.id] {
                do {
                    changes.append(try kind(of: record))
                } catch {
                    try RequestCheck.task()
                    throw error
                }
                if filter?.work.isStopped == true { try RequestCheck.task() }
            } else if change.sequence > place.start {
                changes.append(.removed(String(decoding: change.id, as: UTF8.self)))
            }
        }
        reached.sequence = tables.sequence
        after = cursor(tables, reached)
        return ChangePage(changes: changes, cursor: after, hasMore: false)
    }

    private mutating func kind(of record: Record) throws(CRUDError) -> Change<EncodedItem>.Kind {
        var record = record
        do throws(JSONSyntaxError) {
            if let matches = try filter?.matches(record.item.bytes.span), !matches {
                return .unmatched(String(decoding: record.id, as: UTF8.self))
            }
            if let fields {
                var item: [UInt8] = []
                try fields.append(of: record.item.bytes.span, to: &item, &work)
                record.item = EncodedItem(bytes: item)
            }
        } catch {
            // It was checked when it came; the work may have been stopped.
            throw CRUDError(.internalError, "an item is not JSON")
        }
        return .saved(record.versioned())
    }

    // MARK: Cursors

    private typealias Place = (sequence: UInt64, start: UInt64)

    /// - Throws: `cursor_expired` for a cursor of another database, `invalid_query` for what is none.
    private func place(in tables: Tables) throws(CRUDError) -> Place {
        let cursor = after.text
        if cursor == Cursor.now.text { return (tables.sequence, 0) }
        if cursor == Cursor.start.text { return (0, tables.sequence) }
        let numbers = cursor.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
        guard numbers.count == 3, let database = numbers[0], let sequence = numbers[1], let start = numbers[2] else {
            throw CRUDError(.invalidQuery, "`after` is not a cursor of changes")
        }
        guard database == tables.number, sequence <= tables.sequence else {
            throw CRUDError(.cursorExpired, "`after` is a cursor of another collection: begin again at \"start\"")
        }
        return (sequence, start)
    }

    private func cursor(_ tables: Tables, _ place: Place) -> Cursor {
        Cursor("\(tables.number)-\(place.sequence)-\(place.start)")
    }
}
