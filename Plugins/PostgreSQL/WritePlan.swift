import CRUDPluginKit
import Synchronization

/// Tells a record from all others of a backend.
struct RecordKey: Hashable {
    private let collection: ObjectIdentifier
    private let id: [UInt8]

    init(_ mutation: Mutation<PostgreSQLCollection>) {
        collection = ObjectIdentifier(mutation.collection)
        id = Array(mutation.id)
    }
}

/// The statements that apply a part of a batch, in their order.
///
/// Mutations of different records do not depend on each other: puts that may find any record, or none, are gathered and
/// stored by statements of many rows. A record that occurs again ends that, as its mutations take effect in order (and
/// PostgreSQL refuses a statement that would store a row twice).
struct WritePlan {
    /// One statement and the mutations that it applies.
    struct Step {
        let statement: CollectionStatement
        let scope: StatementScope
        let positions: [Int]
    }

    private(set) var steps: [Step] = []
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

    init(_ batch: borrowing WriteBatch<PostgreSQLCollection>, _ range: Range<Int>) {
        for position in range {
            let mutation = batch[position]
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

    private mutating func append(_ mutation: Mutation<PostgreSQLCollection>, _ position: Int) {
        let collection = mutation.collection
        let layout = collection.layout
        switch (mutation.kind, mutation.precondition) {
        case (.put, .none), (.put, .absent):
            join(
                Group(
                    collection: collection, layout: layout, ifAbsent: mutation.precondition == .absent,
                    positions: [position]))
        case (.put, .present): add(.update(ifRevision: false), layout.scope, position)
        case (.put, .revision): add(.update(ifRevision: true), layout.scope, position)
        case (.remove, .none), (.remove, .present), (.remove, .revision):
            let isRemembered = layout.keepsSequences && mutation.sequence != 0
            add(
                .remove(ifRevision: mutation.precondition == .revision, isRemembered: isRemembered), collection.scope,
                position)
        case (.setKeys, .revision) where !layout.scope.indexes.isEmpty: add(.setKeys, layout.scope, position)
        default: add(.examine, collection.scope, position)
        }
    }

    private mutating func add(_ statement: CollectionStatement, _ scope: StatementScope, _ position: Int) {
        steps.append(Step(statement: statement, scope: scope, positions: [position]))
    }

    private mutating func join(_ group: Group) {
        let place = groups.firstIndex { $0.layout === group.layout && $0.ifAbsent == group.ifAbsent }
        if let place { groups[place].positions += group.positions } else { groups.append(group) }
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
            for position in positions { parameters.add(batch[position], scope) }
            if ifAbsent { parameters.add(batch.now) }
        case .update(let ifRevision):
            parameters.add(first, scope)
            parameters.add(batch.now)
            if ifRevision { parameters.add(first.expected) }
        case .remove(let ifRevision, let isRemembered):
            parameters.add(first.id)
            parameters.add(batch.now)
            if ifRevision { parameters.add(first.expected) }
            if isRemembered { parameters.add(Int64(clamping: first.sequence)) }
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
    /// - Returns: whether each of them took effect.
    func judge(_ result: QueryResult, _ batch: borrowing WriteBatch<PostgreSQLCollection>) -> Bool {
        let position = positions[0]
        switch statement {
        case .put(_, let ifAbsent): return judgePuts(result, ifAbsent: ifAbsent, batch)
        case .remove(ifRevision: false, isRemembered: true):
            return result.integer(0, 0) > 0
                ? batch.applied(position, replacing: false) : batch.refused(position, .notFound)
        case .update(ifRevision: false), .remove(ifRevision: false, isRemembered: false):
            return result.affectedRows > 0
                ? batch.applied(position, replacing: batch[position].kind == .put) : batch.refused(position, .notFound)
        case .update, .remove, .setKeys: return judgeConditional(result, batch)
        case .examine:
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
                // Without a condition every row is stored, unless somebody has put a rule or trigger on the table.
                isApplied = batch.refused(position, ifAbsent ? .exists : .unsupported)
            }
        }
        return isApplied
    }

    private func judgeConditional(
        _ result: QueryResult, _ batch: borrowing WriteBatch<PostgreSQLCollection>
    ) -> Bool {
        let position = positions[0]
        if result.integer(0, 0) > 0 { return batch.applied(position, replacing: batch[position].kind == .put) }
        if result.isNull(0, 1) { return batch.refused(position, .notFound) }
        // Where it is the expected one, somebody else has changed the record in that moment.
        let current = StoredRecord.known(result.bytes(0, 1))
        return current.elementsEqual(batch[position].expected)
            ? batch.refused(position, .unavailable) : batch.mismatched(position, current: current)
    }
}

extension Parameters {
    /// What a put stores.
    fileprivate mutating func add(_ mutation: Mutation<PostgreSQLCollection>, _ scope: StatementScope) {
        add(mutation.id)
        add(mutation.revision)
        add(mutation.item)
        add(orNull: mutation.expiresAt)
        add(orNull: Int64(clamping: mutation.sequence))
        for position in scope.positions { add(mutation.keys[position]) }
    }
}
