import CRUDPluginKit

/// The order of sequence numbers, which a collection keeps while it is open for it: its records, and between them what
/// was removed.
struct SequenceOrder: Sendable {
    private(set) var entries = OrderedTree<SequencedRecord>()
    /// The records that have no number, by id.
    private(set) var unnumbered = OrderedTree<Record>()
    /// What was removed, once more, to be forgotten.
    private var removals = OrderedTree<SequencedRecord>()
    private(set) var identity: UInt64
    /// The highest number of a removal that was forgotten.
    private(set) var forgotten: UInt64 = 0
    /// What the removals count towards `max_bytes`.
    private(set) var size = 0

    /// The order of records; nothing was removed so far.
    init(of records: OrderedTree<Record>) {
        identity = History.makeIdentity()
        var numbered: [SequencedRecord] = []
        records.visit(TreeRange()) { record in
            if let entry = SequencedRecord(record) { numbered.append(entry) } else { unnumbered.insert(record) }
            return true
        }
        numbered.sort { $0.sequence < $1.sequence }
        for entry in numbered { entries.insert(entry) }
    }

    /// The order as it was.
    ///
    /// - Parameters:
    ///   - records: by id.
    ///   - removals: those that are remembered.
    ///   - identity: that of the history.
    ///   - forgotten: the highest number of a removal that was forgotten.
    init(of records: [Record], removals: [Record], identity: UInt64, forgotten: UInt64) {
        self.identity = identity
        self.forgotten = forgotten
        let removed = removals.map { SequencedRecord(removal: $0) }
        entries = OrderedTree(records.compactMap { SequencedRecord($0) } + removed)
        self.removals = OrderedTree(removed)
        unnumbered = OrderedTree(sorted: records.filter { $0.sequence == 0 })
        size = removals.reduce(0) { $0 + $1.size }
    }

    /// Hands over what remembers removals.
    func visitRemovals(_ body: (Record) -> Void) {
        removals.visit(TreeRange()) { removal in
            body(removal.record)
            return true
        }
    }

    /// Puts a record into the place of another with the same id. Nil: there was none; there is none any more.
    mutating func replace(_ old: Record?, by new: Record?) {
        if let old {
            if let entry = SequencedRecord(old) {
                entry.withPosition { entries.remove(at: $0) }
            } else {
                old.withPosition { unnumbered.remove(at: $0) }
            }
        }
        if let new {
            if let entry = SequencedRecord(new) { entries.insert(entry) } else { unnumbered.insert(new) }
        }
    }

    /// Continues another history.
    mutating func take(identity: UInt64, forgotten: UInt64) {
        self.identity = identity
        self.forgotten = forgotten
    }

    /// - Returns: false for a removal that is remembered already.
    @discardableResult
    mutating func remember(_ removal: Record) -> Bool {
        let entry = SequencedRecord(removal: removal)
        if entry.withPosition({ removals.element(at: $0) }) != nil { return false }
        entries.insert(entry)
        removals.insert(entry)
        size += removal.size
        return true
    }

    /// Forgets the first removals, if they were made before a moment.
    ///
    /// - Returns: what has remembered them.
    mutating func trim(before: Int64, limit: Int) -> [Record] {
        var old: [SequencedRecord] = []
        if limit > 0 {
            removals.visit(TreeRange()) { removal in
                guard let removedAt = removal.removedAt, removedAt < before else { return false }
                old.append(removal)
                return old.count < limit
            }
        }
        for removal in old {
            removal.withPosition { position in
                entries.remove(at: position)
                removals.remove(at: position)
            }
            size -= removal.record.size
            forgotten = max(forgotten, removal.sequence)
        }
        return old.map(\.record)
    }
}
