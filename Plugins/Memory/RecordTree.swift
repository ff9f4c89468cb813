import CRUDPluginKit

/// The records of a collection, ordered by id: a B-tree of value types.
///
/// A copy of the tree shares all nodes with the original, and a change copies just the nodes on the way to the record,
/// each once for as long as nobody else shares it. So a reader has a view of its own for the price of one retain, a
/// batch is undone by dropping the copy that it was applied to, and no reader ever waits for the writer.
struct RecordTree: Sendable {
    private var root = Node()
    /// What the records count towards `max_bytes`.
    private(set) var size = 0

    func record(_ id: UnsafeRawBufferPointer) -> Record? {
        root.record(id)
    }

    /// Stores a record in the place of one with the same id, if there is one.
    mutating func insert(_ record: Record) {
        // The id is read before the array it lies in could go.
        let replaced = unsafe record.bytes.withUnsafeBytes { bytes in
            root.insert(record, UnsafeRawBufferPointer(rebasing: bytes[record.idRange]))
        }
        size += record.size - (replaced?.size ?? 0)
        if root.isOverfull {
            let (left, middle, right) = root.halves
            root = Node(records: [middle], children: [left, right])
        }
    }

    mutating func remove(_ id: UnsafeRawBufferPointer) {
        size -= root.remove(id)?.size ?? 0
        if root.records.isEmpty, let only = root.children.first { root = only }
    }

    /// Hands over the records of a range in order, until `body` answers false.
    func walk(_ range: IDRange, _ body: (Record) -> Bool) {
        // The bounds are used before the closure returns.
        unsafe range.lower.withUnsafeBytes { lower in
            _ = root.walk(from: lower) { record in
                // As above.
                if let upper = range.upper, unsafe upper.withUnsafeBytes({ record.compare($0) >= 0 }) { return false }
                return body(record)
            }
        }
    }

    /// How many records a range has.
    func count(_ range: IDRange) -> Int {
        // The bounds are used before the closures return.
        let lower = unsafe range.lower.withUnsafeBytes { root.rank($0) }
        guard let upper = range.upper else { return root.count - lower }
        return unsafe upper.withUnsafeBytes { root.rank($0) } - lower
    }
}
