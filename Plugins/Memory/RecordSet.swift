/// The records of a collection in each of its orders. A copy is a snapshot: it shares every node with the original
/// until either changes.
struct RecordSet: Sendable {
    private(set) var byID = OrderedTree<Record>()
    /// Nil: the collection was not opened with this order.
    private(set) var bySequence: OrderedTree<SequencedRecord>?
    /// In the order in which the collection's specification names them.
    private(set) var indexes: [RecordIndex] = []
    private var indexesMade: UInt32 = 0
    /// What the records count towards `max_bytes`.
    private(set) var size = 0

    /// Puts a record into the place of another with the same id, in every order. Nil: there was none; there is none any
    /// more.
    mutating func replace(_ old: Record?, by new: Record?) {
        size += (new?.size ?? 0) - (old?.size ?? 0)
        if let new {
            byID.insert(new)
        } else {
            old?.withPosition { byID.remove(at: $0) }
        }
        if let entry = old.flatMap(SequencedRecord.init) { entry.withPosition { bySequence?.remove(at: $0) } }
        if let entry = new.flatMap(SequencedRecord.init) { bySequence?.insert(entry) }
        for position in indexes.indices { indexes[position].replace(old, by: new) }
    }

    /// Keeps, adds and drops indexes, so that there are those with these names, in this order. A new one has no keys.
    mutating func setIndexes(_ names: [[UInt8]]) {
        indexes = names.map { name in
            if let index = indexes.first(where: { $0.name == name }) { return index }
            indexesMade += 1
            return RecordIndex(name: name, number: indexesMade, over: byID)
        }
    }

    /// Whether there is the order by sequence. To add it takes time that grows with the records.
    var hasSequences: Bool {
        get { bySequence != nil }
        set {
            guard newValue != hasSequences else { return }
            bySequence = newValue ? makeSequences() : nil
        }
    }

    private func makeSequences() -> OrderedTree<SequencedRecord> {
        var entries: [SequencedRecord] = []
        byID.visit(TreeRange()) { record in
            if let entry = SequencedRecord(record) { entries.append(entry) }
            return true
        }
        entries.sort { $0.sequence < $1.sequence }
        return entries.reduce(into: OrderedTree()) { $0.insert($1) }
    }
}
