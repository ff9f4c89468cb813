import CRUDJSON
import CRUDModel
import CRUDQuery

/// Records in memory, kept in order by id and by index key, as a storage adapter keeps them.
final class TableSource: RecordSource {
    private struct Row {
        var item: [UInt8]
        var revision: [UInt8]
        /// For each index the key; nil: unkeyed.
        var keys: [[UInt8]?]
        /// Its position in the order in which records were put first.
        var position: UInt64
    }

    private typealias Entry = (key: [UInt8], id: [UInt8])

    let paths: [PropertyPath]
    private var rows: [[UInt8]: Row] = [:]
    /// The entries of each order, made when they are asked for.
    private var entries: [OrderName: [Entry]] = [:]
    private var revisions = 0
    private var positions: UInt64 = 0
    /// How many records have been shown to visitors.
    private(set) var visited = 0
    /// How many records have been counted.
    private(set) var counted = 0

    private enum OrderName: Hashable {
        case id
        case key(Int)
        case unkeyed(Int)
    }

    init(_ paths: [String] = []) {
        self.paths = paths.map { PropertyPath(text: $0) ?? PropertyPath(names: [$0]) }
    }

    /// The indexes that serve: the first `count`, all by default.
    func target(_ count: Int? = nil, decode: QueryTarget.Decoder? = nil) -> QueryTarget {
        let indexes = paths.prefix(count ?? paths.count).enumerated().map { QueryIndex(path: $1, number: $0) }
        return QueryTarget(name: Array("table".utf8), indexes: indexes, decode: decode)
    }

    // MARK: Changes

    var ids: [[UInt8]] { Array(rows.keys).sorted { $0.lexicographicallyPrecedes($1) } }

    func item(_ id: [UInt8]) -> [UInt8]? { rows[id]?.item }

    /// - Parameter isKeyed: false: as if somebody else had written the record.
    func put(_ id: String, _ item: String, isKeyed: Bool = true) {
        put(Array(id.utf8), Array(item.utf8), isKeyed: isKeyed)
    }

    func put(_ id: [UInt8], _ item: [UInt8], isKeyed: Bool = true) {
        revisions += 1
        let keys = isKeyed ? keys(of: item) : Array(repeating: nil, count: paths.count)
        if rows[id] == nil { positions += 1 }
        let position = rows[id]?.position ?? positions
        rows[id] = Row(item: item, revision: Array("r\(revisions)".utf8), keys: keys, position: position)
        entries.removeAll()
    }

    func remove(_ id: [UInt8]) {
        rows[id] = nil
        entries.removeAll()
    }

    /// Gives a record its keys, or takes them away.
    func setKeyed(_ id: [UInt8], _ isKeyed: Bool) {
        guard let row = rows[id] else { return }
        rows[id]?.keys = isKeyed ? keys(of: row.item) : Array(repeating: nil, count: paths.count)
        entries.removeAll()
    }

    func revision(_ id: [UInt8]) -> [UInt8]? { rows[id]?.revision }

    private func keys(of item: [UInt8]) -> [[UInt8]?] {
        var encoder = IndexKeyEncoder(paths)
        var keys: [[UInt8]?] = Array(repeating: nil, count: paths.count)
        do throws(JSONSyntaxError) {
            try encoder.encode(item.span) { keys[$0] = $1.isEmpty ? nil : Array($1) }
        } catch {
            return Array(repeating: nil, count: paths.count)
        }
        return keys
    }

    // MARK: RecordSource

    func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError) {
        var found = selected(scan)
        if scan.isReversed { found.reverse() }
        if scan.order == .any {
            found = found.filter { position($0) > scan.afterPosition }.sorted { position($0) < position($1) }[...]
        } else if let after = scan.after {
            let after: Entry = (after.key, after.id)
            let start = found.firstIndex { scan.isReversed ? isBefore($0, after) : isBefore(after, $0) }
            found = found[(start ?? found.endIndex)...]
        }
        if scan.limit > 0 { found = found.prefix(scan.limit) }
        for entry in found {
            guard let row = rows[entry.id] else { continue }
            visited += 1
            let wantsMore = entry.id.withUnsafeBytes { id in
                (scan.withItems ? row.item : []).withUnsafeBytes { item in
                    row.revision.withUnsafeBytes { revision in
                        visitor.visit(
                            FoundRecord(
                                id: id, item: item, revision: revision,
                                position: scan.order == .any ? row.position : 0))
                    }
                }
            }
            if !wantsMore { return }
        }
    }

    func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int {
        let count = selected(scan).count
        counted += limit > 0 ? min(count, limit) : count
        return limit > 0 ? min(count, limit) : count
    }

    private func position(_ entry: Entry) -> UInt64 { rows[entry.id]?.position ?? 0 }

    private func isBefore(_ left: Entry, _ right: Entry) -> Bool {
        left.key == right.key
            ? left.id.lexicographicallyPrecedes(right.id) : left.key.lexicographicallyPrecedes(right.key)
    }

    private func selected(_ scan: RecordScan) -> ArraySlice<Entry> {
        switch scan.order {
        case .id, .any: bounded(ordered(.id), scan) { $0.id }
        case .key(let index): bounded(ordered(.key(index)), scan) { $0.key }
        case .unkeyed(let index): ordered(.unkeyed(index))[...]
        case .sequence, .unsequenced: []
        }
    }

    private func bounded(
        _ entries: [Entry], _ scan: RecordScan, _ text: (Entry) -> [UInt8]
    ) -> ArraySlice<Entry> {
        func start(_ bound: [UInt8]) -> Int {
            var (low, high) = (0, entries.count)
            while low < high {
                let middle = (low + high) / 2
                if text(entries[middle]).lexicographicallyPrecedes(bound) { low = middle + 1 } else { high = middle }
            }
            return low
        }
        let lower = start(scan.lower)
        return entries[lower..<max(lower, scan.upper.isEmpty ? entries.count : start(scan.upper))]
    }

    private func ordered(_ name: OrderName) -> [Entry] {
        if let entries = entries[name] { return entries }
        var made: [Entry] = []
        for (id, row) in rows {
            switch name {
            case .id: made.append(([], id))
            case .key(let index): if let key = row.keys[index] { made.append((key, id)) }
            case .unkeyed(let index): if row.keys[index] == nil { made.append(([], id)) }
            }
        }
        made.sort(by: isBefore)
        entries[name] = made
        return made
    }
}
