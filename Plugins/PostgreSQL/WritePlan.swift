import CRUDPluginKit
import Synchronization

/// Tells a record from all others of a backend.
struct RecordKey: Hashable {
    private let collection: ObjectIdentifier
    private let id: [UInt8]

    init(_ mutation: Mutation<PostgreSQLCollection>) {
        self.init(mutation.collection, mutation.id)
    }

    init(_ collection: PostgreSQLCollection, _ id: UnsafeRawBufferPointer) {
        self.collection = ObjectIdentifier(collection)
        self.id = Array(id)
    }
}

/// Locks of ids, by which daemons that share a schema keep a record absent that an atomic batch has found so.
///
/// They are PostgreSQL's advisory locks, which end with the transaction, and are taken in one order. There are
/// ``perTable`` for each table, so that a batch of any size needs few.
struct IDLocks {
    /// By number: whether the lock is exclusive.
    private var locks: [Int64: Bool] = [:]

    static let perTable: UInt64 = 64

    var isEmpty: Bool { locks.isEmpty }

    mutating func add(_ mutation: Mutation<PostgreSQLCollection>) {
        let number = Self.number(mutation.collection, mutation.id)
        switch (mutation.kind, mutation.precondition) {
        case (.check, .absent): locks[number] = true
        // One that a check needs stays exclusive.
        case (.put, .none), (.put, .absent): locks[number] = locks[number] ?? false
        default: break
        }
    }

    /// Adds the lock of an id that no other daemon may create or find absent.
    mutating func addExclusive(_ collection: PostgreSQLCollection, _ id: UnsafeRawBufferPointer) {
        locks[Self.number(collection, id)] = true
    }

    /// The same in every daemon.
    private static func number(_ collection: PostgreSQLCollection, _ id: UnsafeRawBufferPointer) -> Int64 {
        Int64(bitPattern: hash(collection.scope.table.utf8) &+ hash(id) % perTable)
    }

    /// FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>).
    private static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// For ``CollectionStatement/lockIDs``.
    var parameters: Parameters {
        var parameters = Parameters()
        parameters.add(array: locks.sorted { $0.key < $1.key }.map { Array("\($1 ? "x" : "s")\($0)".utf8) })
        return parameters
    }
}

/// The statements that apply a part of a batch, in their order.
///
/// Mutations of different records do not depend on each other: puts that may find any record, or none, are gathered and
/// stored by statements of many rows. A record that occurs again ends that, as its mutations take effect in order (and
/// PostgreSQL refuses a statement that would store a row twice).
///
/// Where several daemons write, all transactions lock records in one order, that of their tables and ids, so that no
/// two wait for each other; and what an atomic batch checks stays so until it is committed: a record by a lock of its
/// row, an absent one by a lock of its id, which a transaction that stores a new record takes as well.
struct WritePlan {
    /// One statement and the mutations that it applies.
    struct Step {
        let statement: CollectionStatement
        let scope: StatementScope
        let positions: [Int]
    }

    private(set) var steps: [Step] = []
    /// The locks of ids, which come first; empty where one daemon writes.
    private(set) var idLocks = IDLocks()
    private let isShared: Bool
    private var groups: [Group] = []
    private var records: Set<RecordKey> = []

    private static let maximumRows = 64

    /// Puts that one kind of statement stores.
    private struct Group {
        let collection: PostgreSQLCollection
        let layout: PostgreSQLCollection.Layout
        let ifAbsent: Bool
        var positions: [Int]
    }

    /// - Parameter isShared: whether several daemons write.
    init(_ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>, isShared: Bool) {
        self.isShared = isShared
        for position in isShared ? Self.inOrderOfLocks(batch, range) : Array(range) {
            let mutation = batch[position]
            if isShared { idLocks.add(mutation) }
            if range.count > 1 {
                let key = RecordKey(mutation)
                if !records.insert(key).inserted {
                    endGroups()
                    records = [key]
                }
            }
            append(mutation, position)
        }
        endGroups()
    }

    /// Mutations of one record stay in their order.
    private static func inOrderOfLocks(
        _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>
    ) -> [Int] {
        guard range.count > 1 else { return Array(range) }
        return range.map { (position: $0, table: batch[$0].collection.tableName, id: Array(batch[$0].id)) }
            .sorted { left, right in
                if left.table != right.table { return left.table < right.table }
                if left.id != right.id { return left.id.lexicographicallyPrecedes(right.id) }
                return left.position < right.position
            }.map(\.position)
    }

    private mutating func append(_ mutation: Mutation<PostgreSQLCollection>, _ position: Int) {
        let collection = mutation.collection
        let layout = collection.layout
        switch (mutation.kind, mutation.precondition) {
        case (.put, .none), (.put, .absent):
            join(
                Group(
                    collection: collection, layout: layout, ifAbsent: mutation.precondition == .absent,
                    positions: [position]))
        case (.put, .present), (.put, .revision):
            let ifRevision = mutation.precondition == .revision
            add(.update(ifRevision: ifRevision, tellsRevision: ifRevision || isShared), layout.scope, position)
        case (.remove, .none), (.remove, .present), (.remove, .revision):
            let ifRevision = mutation.precondition == .revision
            add(
                .remove(
                    ifRevision: ifRevision, tellsRevision: ifRevision || isShared,
                    isRemembered: layout.keepsSequences && mutation.sequence != 0), collection.scope, position)
        case (.setKeys, .revision) where !layout.scope.indexes.isEmpty: add(.setKeys, layout.scope, position)
        default: add(.examine(locks: isShared), collection.scope, position)
        }
    }

    private mutating func add(_ statement: CollectionStatement, _ scope: StatementScope, _ position: Int) {
        if isShared { endGroups() }
        steps.append(Step(statement: statement, scope: scope, positions: [position]))
    }

    private mutating func join(_ group: Group) {
        let place = groups.firstIndex { $0.layout === group.layout && $0.ifAbsent == group.ifAbsent }
        if let place {
            groups[place].positions += group.positions
        } else {
            if isShared { endGroups() }
            groups.append(group)
        }
    }

    private mutating func endGroups() {
        for group in groups {
            if !group.ifAbsent, group.collection.mayExpire.load(ordering: .relaxed) {
                // So that the statement tells whether there was a record.
                steps.append(
                    Step(statement: .removeExpired, scope: group.collection.scope, positions: group.positions))
            }
            var rest = group.positions[...]
            while !rest.isEmpty {
                // Powers of two, so that a few statements serve batches of any size.
                let rows = min(Self.maximumRows, 1 << (Int.bitWidth - 1 - rest.count.leadingZeroBitCount))
                steps.append(
                    Step(
                        statement: .put(rows: rows, ifAbsent: group.ifAbsent), scope: group.layout.scope,
                        positions: Array(rest.prefix(rows))))
                rest = rest.dropFirst(rows)
            }
        }
        groups.removeAll(keepingCapacity: true)
    }
}

extension WritePlan.Step {
    func parameters(_ batch: borrowing WriteBatch<PostgreSQLCollection>) -> Parameters {
        var parameters = Parameters()
        let first = batch[positions[0]]
        switch statement {
        case .put(_, let ifAbsent):
            for position in positions { parameters.add(batch[position], position, scope) }
            if ifAbsent { parameters.add(batch.now) }
        case .update(let ifRevision, _):
            parameters.add(first, positions[0], scope)
            parameters.add(batch.now)
            if ifRevision { parameters.add(first.expected) }
        case .remove(let ifRevision, _, let isRemembered):
            parameters.add(first.id)
            parameters.add(batch.now)
            if ifRevision { parameters.add(first.expected) }
            if isRemembered { parameters.add(scope.number(of: first, at: positions[0])) }
        case .setKeys:
            parameters.add(first.id)
            parameters.add(batch.now)
            parameters.add(first.expected)
            for position in scope.positions { parameters.add(first.keys[position]) }
        case .removeExpired:
            // The elements are read while this call of the batch lasts.
            let ids = positions.map { batch[$0].id }
            parameters.add(array: ids.count) { ids[$0] }
            parameters.add(batch.now)
        default: parameters.add(first.id)
        }
        return parameters
    }

    /// Gives the mutations of the statement their outcomes.
    ///
    /// - Parameter overtaken: gets the position of a mutation that has none, as another client has changed its record
    ///   in that moment: the statement has waited for that, and knows only what was there before.
    /// - Returns: whether each of them took effect.
    func judge(
        _ result: QueryResult, _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ overtaken: inout [Int]
    ) -> Bool {
        let position = positions[0]
        switch statement {
        case .put(_, let ifAbsent): return judgePuts(result, ifAbsent: ifAbsent, batch)
        case .remove(ifRevision: false, _, isRemembered: true):
            return result.integer(0, 0) > 0
                ? batch.applied(position, replacing: false) : batch.refused(position, .notFound)
        case .update(_, tellsRevision: false), .remove(_, tellsRevision: false, isRemembered: false):
            return result.affectedRows > 0
                ? batch.applied(position, replacing: batch[position].kind == .put) : batch.refused(position, .notFound)
        case .update, .remove, .setKeys: return judgeConditional(result, batch, &overtaken)
        case .examine(let locks):
            if locks, result.rowCount > 0, result.integer(0, 2) == 0 {
                overtaken.append(position)
                return false
            }
            let current = result.rowCount == 0 ? nil : (StoredRecord.known(result.bytes(0, 0)), result.integer(0, 1))
            return batch.permits(batch[position], at: position, current: current)
                && batch.applied(position, replacing: false)
        default: return true
        }
    }

    private func judgePuts(
        _ result: QueryResult, ifAbsent: Bool, _ batch: borrowing WriteBatch<PostgreSQLCollection>
    ) -> Bool {
        // Rows come in the order of the values, without those that were not stored; from shards in any order.
        var row = 0
        var others: [[UInt8]: Int]?
        var isApplied = true
        for position in positions {
            let id = batch[position].id
            var own: Int?
            if row < result.rowCount, result.bytes(row, 0).elementsEqual(id) {
                own = row
                row += 1
            } else if result.rowCount > 0 {
                let rows =
                    others
                    ?? Dictionary(
                        (0..<result.rowCount).map { (Array(result.bytes($0, 0)), $0) }, uniquingKeysWith: { $1 })
                others = rows
                own = rows[Array(id)]
            }
            if let own {
                batch.applied(position, replacing: !ifAbsent && result.integer(own, 1) == 0)
            } else {
                // Without a condition every row is stored, unless the table has a rule or trigger.
                isApplied = batch.refused(position, ifAbsent ? .exists : .unsupported)
            }
        }
        return isApplied
    }

    private func judgeConditional(
        _ result: QueryResult, _ batch: borrowing WriteBatch<PostgreSQLCollection>, _ overtaken: inout [Int]
    ) -> Bool {
        let position = positions[0]
        if result.integer(0, 0) > 0 { return batch.applied(position, replacing: batch[position].kind == .put) }
        if result.isNull(0, 1) { return batch.refused(position, .notFound) }
        let current = StoredRecord.known(result.bytes(0, 1))
        if batch[position].precondition == .revision, !current.elementsEqual(batch[position].expected) {
            return batch.mismatched(position, current: current)
        }
        overtaken.append(position)
        return false
    }
}

extension Parameters {
    /// What the put at a position of a batch stores.
    fileprivate mutating func add(
        _ mutation: Mutation<PostgreSQLCollection>, _ position: Int, _ scope: StatementScope
    ) {
        add(mutation.id)
        add(mutation.revision)
        add(mutation.item)
        add(orNull: mutation.expiresAt)
        add(orNull: scope.number(of: mutation, at: position))
        for position in scope.positions { add(mutation.keys[position]) }
    }
}
