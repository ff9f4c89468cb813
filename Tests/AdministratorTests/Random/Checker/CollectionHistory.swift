import CRUDTestSupport

/// Decides whether what clients were told of a collection can be true; see ``RecordHistory``.
struct CollectionHistory {
    let name: String
    private var records: [RecordHistory]
    private var lastTicket = 0
    /// Drops that have no reply yet.
    private var drops: Set<Int> = []
    /// Scans that have no reply yet.
    private var scans: Set<Int> = []
    /// The records of the connections' operations that have no reply yet.
    private var operations: [Int: Int] = [:]

    init(_ name: String, records count: Int) {
        self.name = name
        records = Array(repeating: RecordHistory(), count: count)
    }

    var count: Int { records.count }

    /// How many operations on that record have no reply yet.
    func pendingCount(of id: Int) -> Int { records[id].pendingCount - drops.count }

    /// What a record can hold now.
    func items(of id: Int) -> Set<Item?> { records[id].items }

    /// How many records are there whatever becomes of the operations in flight.
    var certainCount: Int { records.count { !$0.items.contains(nil) } }

    // MARK: Records

    mutating func begin(_ operation: RecordHistory.Operation, _ id: Int, on connection: Int) -> Int {
        lastTicket += 1
        operations[lastTicket] = id
        records[id].begin(lastTicket, operation, on: connection)
        return lastTicket
    }

    mutating func end(_ ticket: Int, _ outcome: RecordHistory.Outcome) throws(Violation) {
        guard let id = operations.removeValue(forKey: ticket) else { return }
        try check(id) { record throws(Violation) in try record.end(ticket, outcome) }
    }

    private mutating func check(_ id: Int, _ body: (inout RecordHistory) throws(Violation) -> Void) throws(Violation) {
        do throws(Violation) {
            try body(&records[id])
        } catch {
            throw Violation(description: "\(name)/\(id): \(error)")
        }
    }

    // MARK: The collection

    /// All records are removed.
    mutating func beginDrop() -> Int {
        lastTicket += 1
        drops.insert(lastTicket)
        for id in records.indices { records[id].begin(lastTicket, .drop, on: nil) }
        return lastTicket
    }

    /// - Parameter outcome: `done`, `refused` or `unknown`.
    mutating func endDrop(_ ticket: Int, _ outcome: RecordHistory.Outcome) throws(Violation) {
        guard drops.remove(ticket) != nil else { return }
        for id in records.indices { try check(id) { record throws(Violation) in try record.end(ticket, outcome) } }
    }

    mutating func beginScan() -> Int {
        lastTicket += 1
        scans.insert(lastTicket)
        for id in records.indices { records[id].beginScan(lastTicket) }
        return lastTicket
    }

    /// A query, or whatever returns records by what they are.
    ///
    /// - Parameters:
    ///   - found: what it has returned.
    ///   - isSorted: whether records are missed that change meanwhile.
    ///   - isSelected: whether an item is to be returned.
    mutating func endScan(
        _ ticket: Int, found: [Int: Item], isSorted: Bool = false, isSelected: (Int, Item) -> Bool = { _, _ in true }
    ) throws(Violation) {
        scans.remove(ticket)
        for id in records.indices {
            let item = found[id]
            do throws(Violation) {
                try records[id].endScan(ticket) { seen in
                    if let item { return seen.contains(item) }
                    return isSorted && seen.count > 1 || seen.contains { $0.map { !isSelected(id, $0) } ?? true }
                }
            } catch {
                let text = item.map { "returned as \($0)" } ?? "missed"
                throw Violation(description: "\(name)/\(id): \(text) by a query, but \(error)")
            }
            if let item, !isSelected(id, item) {
                throw Violation(description: "\(name)/\(id): \(item) does not match the query")
            }
        }
    }

    /// A scan that has failed.
    mutating func endScan(_ ticket: Int) throws(Violation) {
        scans.remove(ticket)
        for id in records.indices { try records[id].endScan(ticket) }
    }

    /// A scan that has returned only the number of records.
    ///
    /// - Parameter isSorted: whether records that change meanwhile may be missed, or counted twice.
    mutating func endCount(
        _ ticket: Int, _ count: Int, isSorted: Bool = false, isSelected: (Int, Item) -> Bool = { _, _ in true }
    ) throws(Violation) {
        scans.remove(ticket)
        var least = 0
        var most = 0
        for id in records.indices {
            let seen = records[id].seen(by: ticket)
            let matches = seen.map { $0.map { isSelected(id, $0) } ?? false }
            let changes = isSorted && seen.count > 1
            if !matches.contains(false), !changes { least += 1 }
            if matches.contains(true) { most += changes ? 2 : 1 }
            try records[id].endScan(ticket)
        }
        guard (least...most).contains(count) else {
            throw Violation(description: "\(name): \(count) records were counted, there are \(least) to \(most)")
        }
    }

    // MARK: Losses and changes

    /// The connections and the daemon are gone: what was in flight has taken effect by now or never will.
    mutating func endAll() throws(Violation) {
        for ticket in scans { try endScan(ticket) }
        for ticket in operations.keys.sorted() { try end(ticket, .unknown) }
        for ticket in drops.sorted() { try endDrop(ticket, .unknown) }
    }

    /// What the records held before is in no place any more.
    mutating func forgetPast() {
        for id in records.indices { records[id].forgetPast() }
    }

    /// The collection is served from another place on purpose, where what it held at any time may be, or nothing.
    mutating func replaceByPast() {
        for id in records.indices { records[id].replace(by: records[id].past.union([nil])) }
    }
}
