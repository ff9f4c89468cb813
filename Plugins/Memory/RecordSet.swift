import CRUDPluginKit

/// The records of a collection in each of its orders. A copy is a snapshot: it shares every node with the original
/// until either changes.
struct RecordSet: Sendable {
    private(set) var byID = OrderedTree<Record>()
    /// Those that expire.
    private var byExpiry = OrderedTree<ExpiringRecord>()
    /// Nil: the collection was not opened with this order.
    private(set) var bySequence: SequenceOrder?
    /// In the order in which the collection's specification names them.
    private(set) var indexes: [RecordIndex] = []
    private(set) var indexesMade: UInt32 = 0
    private var recordSize = 0
    /// What the records, and those that were removed, count towards `max_bytes`.
    var size: Int { recordSize + (bySequence?.size ?? 0) }

    init() {}

    /// The records of a collection as they were.
    ///
    /// - Parameters:
    ///   - records: by id.
    ///   - removals: those that are remembered.
    ///   - state: what else is known of the collection.
    init(_ records: [Record], removals: [Record], _ state: CollectionState) {
        byID = OrderedTree(sorted: records)
        byExpiry = OrderedTree(records.compactMap(ExpiringRecord.init))
        recordSize = records.reduce(0) { $0 + $1.size }
        indexes = state.indexes.map { RecordIndex(name: $0.name, number: $0.number, of: records) }
        indexesMade = state.indexesMade
        if state.historyIdentity != 0 {
            bySequence = SequenceOrder(
                of: records, removals: removals, identity: state.historyIdentity, forgotten: state.forgotten)
        }
    }

    /// Puts a record into the place of another with the same id, in every order. Nil: there was none; there is none any
    /// more.
    ///
    /// - Parameter place: of the old one in ``byID``; nil: it is looked for.
    mutating func replace(_ old: Record?, by new: Record?, at place: OrderedTree<Record>.Place? = nil) {
        recordSize += (new?.size ?? 0) - (old?.size ?? 0)
        if let new {
            byID.insert(new, at: place)
        } else {
            old?.withPosition { byID.remove(at: $0) }
        }
        if let entry = old.flatMap(ExpiringRecord.init) { entry.withPosition { byExpiry.remove(at: $0) } }
        if let entry = new.flatMap(ExpiringRecord.init) { byExpiry.insert(entry) }
        bySequence?.replace(old, by: new)
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
            bySequence = newValue ? SequenceOrder(of: byID) : nil
        }
    }

    // MARK: Expiry and removals

    /// Removes a record.
    ///
    /// - Parameter removal: what remembers it; nil: there is no order by sequence.
    mutating func remove(_ record: Record, rememberedBy removal: Record?) {
        replace(record, by: nil)
        if let removal { bySequence?.remember(removal) }
    }

    /// The records that have expired, those that expired first first.
    func expired(at now: Int64, limit: Int) -> [Record] {
        var expired: [Record] = []
        if limit == 0 { return [] }
        byExpiry.visit(TreeRange()) { entry in
            guard entry.expiry <= now else { return false }
            expired.append(entry.record)
            return expired.count < limit
        }
        return expired
    }

    /// When the next record expires; nil: none does.
    var nextExpiry: Int64? {
        var next: Int64?
        byExpiry.visit(TreeRange()) { entry in
            next = entry.expiry
            return false
        }
        return next
    }

    /// Forgets removals, and says what the collection remembers, and what has remembered them; nil: there is no order
    /// by sequence.
    mutating func trimHistory(before: Int64, limit: Int) -> (History, trimmed: [Record])? {
        guard let trimmed = bySequence?.trim(before: before, limit: limit), let order = bySequence else { return nil }
        let history = History(identity: order.identity, forgotten: order.forgotten, trimmed: trimmed.count)
        return (history, trimmed)
    }

    /// Continues the history of another collection.
    ///
    /// - Returns: the removals that were not remembered before; nil: there is no order by sequence.
    mutating func takeHistory(
        _ history: borrowing TakenHistory<MemoryCollection>, number: UInt32
    ) -> [Record]? {
        guard bySequence != nil else { return nil }
        bySequence?.take(identity: history.identity, forgotten: history.forgotten)
        var removals: [Record] = []
        for position in 0..<history.removalCount {
            let (id, sequence) = history.removal(position)
            let removal = Record(removalOf: id, in: number, sequence: sequence, at: history.now)
            if bySequence?.remember(removal) == true { removals.append(removal) }
        }
        return removals
    }
}
