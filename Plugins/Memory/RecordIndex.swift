/// An index of a collection: its records by key, and those that have none.
struct RecordIndex: Sendable {
    let name: [UInt8]
    /// What keys within records name the index by. Never reused, so that what is left of keys of an index that was
    /// removed counts for nothing.
    let number: UInt32
    private(set) var keyed = OrderedTree<KeyedRecord>()
    private(set) var unkeyed: OrderedTree<Record>

    /// A new index, in which none of the records has a key. It shares their tree until the first one gets a key.
    init(name: [UInt8], number: UInt32, over records: OrderedTree<Record>) {
        self.name = name
        self.number = number
        unkeyed = records
    }

    /// An index of records as it was.
    ///
    /// - Parameters:
    ///   - name: a property path.
    ///   - number: what the keys within records name it by.
    ///   - records: by id.
    init(name: [UInt8], number: UInt32, of records: [Record]) {
        self.name = name
        self.number = number
        keyed = OrderedTree(records.compactMap { KeyedRecord($0, index: number) })
        unkeyed = OrderedTree(sorted: records.filter { $0.keyRange(of: number) == nil })
    }

    /// Puts a record into the place of another with the same id. Nil: there was none; there is none any more.
    mutating func replace(_ old: Record?, by new: Record?) {
        let entry = new.flatMap { KeyedRecord($0, index: number) }
        if let oldEntry = old.flatMap({ KeyedRecord($0, index: number) }) {
            oldEntry.withPosition { position in
                let isKept = entry?.withPosition { $0.compare(to: position) == 0 } ?? false
                if !isKept { keyed.remove(at: position) }
            }
        } else if let old, new == nil || entry != nil {
            old.withPosition { unkeyed.remove(at: $0) }
        }
        if let entry { keyed.insert(entry) } else if let new { unkeyed.insert(new) }
    }
}
