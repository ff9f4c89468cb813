/// Decides whether what clients were told of one record can be true.
///
/// The record is a register, and its history has to be linearizable: each operation takes effect at one instant between
/// its request and its reply. The history keeps every state in which the record can be by what has been said so far:
/// what it holds, and what has become of each operation that has no reply yet. A request adds the states in which it
/// has taken effect, a reply removes those that contradict it. If none is left the replies cannot all be true.
///
/// - The requests of one connection take effect in their order. Drops of the collection have no connection.
/// - An operation whose outcome is unknown has taken effect by then, or never will: both states remain, and the first
///   reply that tells them apart decides.
package struct RecordHistory: Sendable {
    package enum Operation: Hashable, Sendable {
        case create(Item)
        case update(Item)
        case upsert(Item)
        /// Sets the number of the last patch.
        case patch(Int)
        case delete, read
        /// Whether there is one.
        case exists
        /// The whole collection is dropped, or replaced by an empty one.
        case drop
    }

    /// What a reply says.
    package enum Outcome: Hashable, Sendable {
        case done
        /// It has returned that item, or none.
        case returned(Item?)
        /// `record_exists`, `record_not_found`: nothing was changed, because of what the record was.
        case exists, missing
        /// Nothing was done.
        case refused
        case unknown
    }

    /// What has become of an operation that has no reply yet.
    private typealias Effect = Outcome

    private struct State: Hashable {
        var item: Item?
        var effects: [Int: Effect] = [:]
    }

    private struct Pending {
        let ticket: Int
        let operation: Operation
        let connection: Int?
        /// What its reply says, where that is known already.
        let outcome: Outcome?

        func allows(_ effect: Effect?) -> Bool { outcome.map { RecordHistory.isPossible($0, effect) } ?? true }
    }

    /// What the record can have held since each scan that has no reply yet.
    private typealias Seen = [Int: Set<Item?>]

    private var states: [State: Seen] = [State(): [:]]
    private var pending: [Pending] = []
    /// Everything that the record can have held since ``forgetPast()``.
    package private(set) var past: Set<Item?> = [nil]

    package init() {}

    /// How many operations have no reply yet.
    package var pendingCount: Int { pending.count }

    /// What it can hold now.
    package var items: Set<Item?> { Set(states.keys.map(\.item)) }

    // MARK: Operations

    /// - Parameter outcome: what its reply will say, where that is known: then nothing else is kept in mind, which
    ///   takes much less where it waits for its reply while many others are executed.
    package mutating func begin(
        _ ticket: Int, _ operation: Operation, on connection: Int?, outcome: Outcome? = nil
    ) {
        pending.append(Pending(ticket: ticket, operation: operation, connection: connection, outcome: outcome))
        expand()
    }

    package mutating func end(_ ticket: Int, _ outcome: Outcome) throws(Violation) {
        let operation = pending.first { $0.ticket == ticket }?.operation
        pending.removeAll { $0.ticket == ticket }
        let known = states
        states = [:]
        for (state, seen) in known where Self.isPossible(outcome, state.effects[ticket]) {
            var next = state
            next.effects[ticket] = nil
            merge(next, seen)
        }
        guard !states.isEmpty else {
            let name = operation.map { "\($0)" } ?? "nothing"
            let items = Self.text(known.keys.map(\.item))
            throw Violation(description: "\(name) was \(outcome), but it can have held \(items)")
        }
        expand()
    }

    private static func isPossible(_ outcome: Outcome, _ effect: Effect?) -> Bool {
        switch outcome {
        case .unknown: true
        case .refused: effect == nil || effect == .refused
        case .done, .returned, .exists, .missing: effect == outcome
        }
    }

    /// Adds all states that operations without a reply can lead to.
    private mutating func expand() {
        guard !pending.isEmpty else { return }
        var unfinished = Array(states.keys)
        while let state = unfinished.popLast() {
            guard let seen = states[state] else { continue }
            for next in successors(of: state) where merge(next, seen) { unfinished.append(next) }
        }
    }

    private func successors(of state: State) -> [State] {
        var connections: Set<Int> = []
        var found: [State] = []
        for operation in pending where state.effects[operation.ticket] == nil {
            if let connection = operation.connection {
                guard connections.insert(connection).inserted else { continue }
                // It may fail, which is said later than that a following one has succeeded.
                var skipped = state
                skipped.effects[operation.ticket] = .refused
                if operation.allows(.refused) { found.append(skipped) }
            }
            let next = Self.applying(operation, to: state)
            if operation.allows(next.effects[operation.ticket]) { found.append(next) }
        }
        // What has become of it will not be asked.
        for operation in pending where operation.outcome == .unknown {
            for position in found.indices where found[position].effects[operation.ticket] != nil {
                found[position].effects[operation.ticket] = .unknown
            }
        }
        return found
    }

    private static func applying(_ pending: Pending, to state: State) -> State {
        var next = state
        var effect = Effect.done
        switch (pending.operation, state.item) {
        case (.read, let item): effect = .returned(item)
        case (.exists, let item): effect = item == nil ? .missing : .exists
        case (.drop, _): next.item = nil
        case (.create, .some): effect = .exists
        case (.update, nil), (.delete, nil), (.patch, nil): effect = .missing
        case (.create(let item), nil), (.update(let item), .some), (.upsert(let item), _): next.item = item
        case (.delete, .some): next.item = nil
        case (.patch(let patch), .some(var item)):
            item.patch = patch
            next.item = item
            effect = .returned(item)
        }
        next.effects[pending.ticket] = effect
        return next
    }

    /// - Returns: whether that is news.
    @discardableResult
    private mutating func merge(_ state: State, _ seen: Seen) -> Bool {
        past.insert(state.item)
        let known = states[state]
        var merged = known ?? [:]
        for (scan, items) in seen { merged[scan, default: []].formUnion(items.union([state.item])) }
        states[state] = merged
        return merged != known
    }

    // MARK: Scans

    /// A method that meets many records begins.
    package mutating func beginScan(_ ticket: Int) {
        for state in states.keys { states[state]?[ticket] = [state.item] }
        expand()
    }

    /// It has ended.
    ///
    /// - Parameter isPossible: whether what it has returned of this record fits to what that has held meanwhile.
    package mutating func endScan(_ ticket: Int, isPossible: (Set<Item?>) -> Bool = { _ in true }) throws(Violation) {
        let seen = seen(by: ticket)
        states = states.filter { isPossible($0.value[ticket] ?? []) }
        for state in states.keys { states[state]?[ticket] = nil }
        if states.isEmpty { throw Violation(description: "it has held \(Self.text(seen))") }
    }

    /// What the record can have held since a scan has begun.
    package func seen(by ticket: Int) -> Set<Item?> {
        states.values.reduce(into: []) { $0.formUnion($1[ticket] ?? []) }
    }

    // MARK: Replacement

    /// What it held before is nowhere any more.
    package mutating func forgetPast() { past = items }

    /// The record is read from elsewhere from now on. No operation may be in flight.
    package mutating func replace(by items: Set<Item?>) {
        states = [:]
        for item in items { states[State(item: item)] = [:] }
    }

    private static func text(_ items: some Sequence<Item?>) -> String {
        let texts = Set(items).map { $0.map { "\($0)" } ?? "nothing" }
        return texts.sorted().prefix(20).joined(separator: ", ")
    }
}
