/// The records of a collection as an array: what scans of it must emit.
struct RecordModel {
    private struct Entry {
        let record: PluginRecord
        let keys: [[UInt8]]
    }

    /// In byte order, `Z` stands before `a`, "é" behind both, and a text before the longer ones that begin with it.
    static let ids = [
        "B", "Z", "a", "a!", "a.b", "ab", "abc", "ab\u{E9}", "b", "z", "~", "\u{E9}", "\u{FFFD}", "\u{1F600}",
    ]

    private var entries: [Entry] = []
    private var removals: [Entry] = []

    init() {}

    /// Writes a record for each id, in no particular order, and fails the check where that does not work.
    ///
    /// - Parameter keys: those of the record with that position in `ids`.
    init(
        ids: [String], _ collection: PluginCollection, _ context: CheckContext, keys: (Int) -> [[UInt8]] = { _ in [] }
    ) throws(CallError) {
        for (number, id) in ids.enumerated() {
            put(PluginRecord(id, bytes: context.item(number), revision: "r\(number)"), keys: keys(number))
        }
        let mutations = entries.map { PluginMutation.put($0.record, keys: $0.keys, in: collection) }
        let outcomes = try collection.backend.write(mutations.shuffled())
        context.expect(outcomes, is: mutations.map { _ in .created }, "puts of new records")
    }

    /// In the order in which they were added.
    var records: [PluginRecord] { entries.map(\.record) }

    /// Adds a record, or replaces the one with its id.
    mutating func put(_ record: PluginRecord, keys: [[UInt8]] = []) {
        remove(record.id)
        entries.append(Entry(record: record, keys: keys))
    }

    mutating func setKeys(of id: String, _ keys: [[UInt8]]) {
        guard let index = entries.firstIndex(where: { $0.record.id.utf8.elementsEqual(id.utf8) }) else { return }
        entries[index] = Entry(record: entries[index].record, keys: keys)
    }

    /// - Parameter sequence: of the removal, where the collection remembers it.
    mutating func remove(_ id: String, sequence: UInt64) {
        remove(id)
        removals.append(Entry(record: .removed(id, sequence: sequence), keys: []))
    }

    mutating func remove(_ id: String) {
        entries.removeAll { $0.record.id.utf8.elementsEqual(id.utf8) }
    }

    /// The key of a record in an index; empty: none.
    func key(of id: String, index: Int) -> [UInt8] {
        entries.first { $0.record.id.utf8.elementsEqual(id.utf8) }.map { Self.key($0, index) } ?? []
    }

    /// The records that a scan emits.
    func scan(
        _ range: PluginRange, isReversed: Bool = false, afterKey: [UInt8] = [], after: String = ""
    ) -> [PluginRecord] {
        let all = range.order == .sequence ? entries + removals : entries
        var found = all.filter { Self.contains(range, $0) }
            .map { (position: Self.position($0, range.order), record: $0.record) }
            .sorted { $0.position < $1.position }
        if isReversed { found.reverse() }
        if !after.isEmpty {
            var start = Position(id: Array(after.utf8))
            if case .key = range.order { start.key = afterKey }
            found.removeAll { isReversed ? $0.position >= start : $0.position <= start }
        }
        return found.map(\.record)
    }

    // MARK: Orders

    /// A record's place in an order; what the order does not sort by is zero.
    private struct Position: Comparable {
        var sequence: UInt64 = 0
        var key: [UInt8] = []
        var id: [UInt8]

        static func < (left: Position, right: Position) -> Bool {
            if left.sequence != right.sequence { return left.sequence < right.sequence }
            if left.key != right.key { return left.key.lexicographicallyPrecedes(right.key) }
            return left.id.lexicographicallyPrecedes(right.id)
        }
    }

    private static func position(_ entry: Entry, _ order: PluginRange.Order) -> Position {
        var position = Position(id: Array(entry.record.id.utf8))
        if order == .sequence { position.sequence = entry.record.sequence }
        if case .key(let index) = order { position.key = key(entry, index) }
        return position
    }

    private static func key(_ entry: Entry, _ index: Int) -> [UInt8] {
        entry.keys.indices.contains(index) ? entry.keys[index] : []
    }

    private static func contains(_ range: PluginRange, _ entry: Entry) -> Bool {
        func isBetween(_ bytes: [UInt8]) -> Bool {
            !bytes.lexicographicallyPrecedes(range.lower)
                && (range.upper.isEmpty || bytes.lexicographicallyPrecedes(range.upper))
        }
        let id = Array(entry.record.id.utf8)
        switch range.order {
        case .id: return isBetween(id)
        case .key(let index): return !key(entry, index).isEmpty && isBetween(key(entry, index))
        case .unsequenced: return entry.record.sequence == 0 && isBetween(id)
        case .unkeyed(let index): return key(entry, index).isEmpty && isBetween(id)
        case .sequence:
            let sequence = entry.record.sequence
            return sequence != 0 && sequence >= range.lowerSequence
                && (range.upperSequence == 0 || sequence < range.upperSequence)
        }
    }
}
