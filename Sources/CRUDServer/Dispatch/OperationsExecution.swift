import CRUDCore
import CRUDModel
import CRUDPluginHost
import CRUDWire

/// A `record.batch` on its way: its operations are in the hands of one backend or of several, and one answer tells what
/// came of each.
final class OperationsExecution {
    /// The request's id as it was sent; nil for a notification.
    let id: [UInt8]?
    let target: ReplyTarget
    let isAtomic: Bool
    /// For each operation `{"result":…}` or `{"error":…}`; empty until that is known.
    private(set) var entries: [[UInt8]]
    /// How many backends have not been heard of.
    private var partsUnderWay = 0

    init(id: [UInt8]?, target: ReplyTarget, isAtomic: Bool, count: Int) {
        self.id = id
        self.target = target
        self.isAtomic = isAtomic
        entries = Array(repeating: [], count: count)
    }

    /// Whether all operations are in the hands of one backend, or of none.
    private(set) var isWhole = true

    func settle(_ index: Int, _ entry: [UInt8]) {
        entries[index] = entry
    }

    func started() {
        isWhole = partsUnderWay == 0
        partsUnderWay += 1
    }

    /// Counts a backend that has been heard of; true if it was the last.
    func ended() -> Bool {
        partsUnderWay -= 1
        return partsUnderWay == 0
    }
}

/// The operations of one request that one backend carries out, one after the other in one batch.
struct OperationsPart {
    /// An operation, and its place in the request.
    struct Member {
        var index: Int
        var kind: Operation.Kind
        var upserts: Bool
    }

    let execution: OperationsExecution
    let operations: [Member]
}
