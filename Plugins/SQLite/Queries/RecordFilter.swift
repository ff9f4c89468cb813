import CRUDJSON
import CRUDModel
import CRUDPluginKit

/// What is asked now and then whether anybody still waits for its answer.
protocol Interruptible: ~Copyable {
    var isInterrupted: Bool { get }
}

extension QueryRequest: Interruptible {}
extension CountRequest: Interruptible {}

/// Decides about rows, whatever led to them: whether a record is wanted, and where it stands in the order.
struct RecordFilter: ~Copyable {
    private var evaluator: FilterEvaluator
    private var values: SortValueReader
    private let order: SortOrder
    private let after: SortPosition?
    private let ids: IDRange
    private let collection: SQLiteCollection
    /// How many rows it has decided about.
    private(set) var scanned = 0
    private var work = 0

    /// How much is looked at between two questions whether anybody still waits: bytes of items, and some for each row.
    private static let workBetweenQuestions = 1 << 18
    private static let workPerRow = 256

    init(
        _ filter: Filter?, _ order: SortOrder, after: SortPosition?, _ ids: IDRange, _ collection: SQLiteCollection
    ) throws(StorageFailure) {
        do throws(CRUDError) {
            evaluator = try FilterEvaluator(filter ?? .constant(true))
        } catch {
            throw StorageFailure(.unsupported, error.message)
        }
        values = SortValueReader(order)
        self.order = order
        self.after = after
        self.ids = ids
        self.collection = collection
    }

    /// Whether a row's record is wanted, wherever it stands. Column 1 is the item, column 2 the id.
    ///
    /// - Throws: `unavailable` where nobody waits any more, `corrupt` for a row that is no record.
    mutating func matches(
        _ row: Statement, _ request: borrowing some Interruptible & ~Copyable
    ) throws(StorageFailure) -> Bool {
        scanned += 1
        let item = try storedItem(row, collection)
        work += Self.workPerRow + item.count
        if work > Self.workBetweenQuestions {
            work = 0
            if request.isInterrupted { throw StorageFailure(.unavailable, "nobody waits any more") }
        }
        do throws(JSONSyntaxError) {
            guard try evaluator.matches(Span(_bytes: item.bytes)) else { return false }
        } catch {
            throw noJSON
        }
        return ids.contains(try storedID(row, collection))
    }

    /// Where a row's record stands if it is wanted.
    mutating func position(
        _ row: Statement, _ request: borrowing some Interruptible & ~Copyable
    ) throws(StorageFailure) -> SortPosition? {
        guard try matches(row, request) else { return nil }
        let item = try storedItem(row, collection)
        var position = SortPosition(values: [], id: Array(try storedID(row, collection)))
        do throws(JSONSyntaxError) {
            position.values = try values.values(of: Span(_bytes: item.bytes))
        } catch {
            throw noJSON
        }
        if let after, order.compare(position, after) <= 0 { return nil }
        return position
    }

    private var noJSON: StorageFailure {
        StorageFailure(.corrupt, "table \(collection.table) has an item that is no JSON")
    }
}
