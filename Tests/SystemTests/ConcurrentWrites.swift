import CRUDTestSupport

/// One request that writes some of a few records: a single operation, or an atomic batch.
struct ConcurrentWrite {
    /// One operation on one record.
    struct Operation {
        enum Kind: CaseIterable {
            case create, upsert, update, delete, patch, check
        }

        let kind: Kind
        let record: Int
        /// nil: none; of a check: that there is no record.
        let ifRevision: String?
        /// What a put stores; a patch adds 1.
        let number: Int
    }

    let operations: [Operation]
    let isAtomic: Bool

    init(_ records: ConcurrentRecords, number: Int, by generator: inout SeededGenerator) {
        isAtomic = Int.random(in: 0..<4, using: &generator) > 0
        var operations: [Operation] = []
        for _ in 0..<(isAtomic ? Int.random(in: 2...4, using: &generator) : 1) {
            let record = Int.random(in: 0..<records.states.count, using: &generator)
            var kind = Operation.Kind.allCases.randomElement(using: &generator) ?? .upsert
            if kind == .check, !isAtomic { kind = .patch }
            let initial = records.states[record]?.revision
            let isConditional = kind == .check || [.update, .delete].contains(kind) && Bool.random(using: &generator)
            operations.append(
                Operation(
                    kind: kind, record: record, ifRevision: isConditional ? initial : nil,
                    number: number + 10 * operations.count))
        }
        self.operations = operations
    }

    /// The request's text.
    func text(_ records: ConcurrentRecords) -> String {
        let parts = operations.map { operation in
            var more: [String: String] = [:]
            if operation.kind == .patch { more["increment"] = #"{"n":1}"# }
            if isAtomic { more["op"] = #""\#(operation.kind)""# }
            if operation.kind == .check, operation.ifRevision == nil { more["ifRevision"] = "null" }
            let hasItem = [.create, .upsert, .update].contains(operation.kind)
            return Connection.params(
                records.collection(operation.record), records.id(operation.record),
                item: hasItem ? #"{"n":\#(operation.number)}"# : nil, ifRevision: operation.ifRevision, more: more)
        }
        if isAtomic {
            let list = parts.joined(separator: ",")
            return Connection.request("record.batch", #"{"atomic":true,"operations":[\#(list)]}"#, id: "1")
        }
        return Connection.request("record.\(operations[0].kind)", parts[0], id: "1")
    }
}

/// A few records of two collections, as one order of writes leaves them.
struct ConcurrentRecords: CustomStringConvertible {
    struct State: Equatable {
        let revision: String
        let number: Int
    }

    var description: String { "\(states.map { $0.map { "\($0.revision):\($0.number)" } ?? "-" })" }

    let round: String
    /// nil: there is none.
    var states: [State?]

    func collection(_ record: Int) -> String { record % 2 == 0 ? "c" : "d" }
    func id(_ record: Int) -> String { "\(round) \(record / 2)" }

    /// Whether a write, executed now, is replied to in this way; it has taken effect then. A batch that fails does so
    /// by one record, whatever the others are.
    mutating func explain(_ write: ConcurrentWrite, _ reply: Reply) -> Bool {
        var after = self
        if let error = reply.error {
            let failing = write.isAtomic ? error.details?["index"]?.integer ?? -1 : 0
            guard write.operations.indices.contains(failing) else { return false }
            let last = write.operations[failing]
            for operation in write.operations[..<failing] where operation.record == last.record {
                if after.error(of: operation) != nil { return false }
                after.apply(operation, nil)
            }
            return after.error(of: last) == error.name
        }
        for (index, operation) in write.operations.enumerated() {
            let result = write.isAtomic ? reply.result?["results"]?.elements?[index]["result"] : reply.result
            let before = after
            after.apply(operation, result)
            guard before.error(of: operation) == nil, after.agrees(before, operation, result) else { return false }
        }
        self = after
        return true
    }

    private func error(of operation: ConcurrentWrite.Operation) -> String? {
        let state = states[operation.record]
        switch operation.kind {
        case .create: return state == nil ? nil : "record_exists"
        case .upsert: return nil
        case .check where operation.ifRevision == nil: return state == nil ? nil : "revision_mismatch"
        case .update, .delete, .patch, .check:
            guard let state else { return "record_not_found" }
            return operation.ifRevision.map { $0 != state.revision } == true ? "revision_mismatch" : nil
        }
    }

    private mutating func apply(_ operation: ConcurrentWrite.Operation, _ result: JSON?) {
        let revision = result?["revision"]?.string ?? "of a write that failed"
        switch operation.kind {
        case .create, .upsert, .update:
            states[operation.record] = State(revision: revision, number: operation.number)
        case .patch:
            let number = states[operation.record]?.number ?? 0
            states[operation.record] = State(revision: revision, number: number + 1)
        case .delete: states[operation.record] = nil
        case .check: break
        }
    }

    /// - Parameter before: the records before the operation.
    private func agrees(_ before: Self, _ operation: ConcurrentWrite.Operation, _ result: JSON?) -> Bool {
        switch operation.kind {
        case .upsert: result?["created"]?.boolean == (before.states[operation.record] == nil)
        case .patch: result?["item"]?["n"]?.integer == states[operation.record]?.number
        default: true
        }
    }

    /// Whether some order of writes explains all replies and leaves these records.
    func order(_ writes: [(ConcurrentWrite, Reply)], leaving last: Self) -> Bool {
        if writes.isEmpty { return states == last.states }
        for (index, (write, reply)) in writes.enumerated() {
            var next = self
            guard next.explain(write, reply) else { continue }
            var rest = writes
            rest.remove(at: index)
            if next.order(rest, leaving: last) { return true }
        }
        return false
    }
}
