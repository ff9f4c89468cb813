import CRUDModel
import CRUDPlacement
import Testing

/// A state of a collection beside what its lists have: a row of the table.
struct TableSituation: CustomTestStringConvertible, Sendable {
    /// A state that is new has no case here, and does not compile.
    enum State: CaseIterable, Sendable {
        case absent, resident, planned, copying

        init(_ state: Placement.State) {
            switch state {
            case .absent: self = .absent
            case .resident: self = .resident
            case .planned: self = .planned
            case .copying: self = .copying
            }
        }
    }

    enum List: CaseIterable, Sendable {
        case none
        /// A move, or force, has left records.
        case originals
        /// Something is to be removed from a backend that is down.
        case obsolete
        /// So are the copies of a move that was cancelled, from where the collection may be moved to again.
        case copies
    }

    let state: State
    let list: List

    /// Those that there can be.
    static let all = State.allCases.flatMap { state in
        List.allCases.map { TableSituation(state: state, list: $0) }
    }.filter { $0.list != .copies || [.resident, .planned].contains($0.state) }

    var testDescription: String { list == .none ? "\(state)" : "\(state), \(list)" }

    var placement: Placement {
        let state: Placement.State =
            switch state {
            case .absent: .absent
            case .resident: .resident(.p)
            case .planned: .planned(.p, to: .q)
            case .copying: .copying(.p, to: .q)
            }
        return switch list {
        case .none: Placement(state)
        case .originals: Placement(state, originals: [.x])
        case .obsolete: Placement(state, obsolete: [.y])
        case .copies: Placement(state, obsolete: [.q])
        }
    }

    /// Where the collection gets its records; nil: it has none.
    var first: CollectionPlace? {
        switch (state, list) {
        case (.absent, .none): nil
        case (_, .originals): .x
        case (.absent, .obsolete): .y
        case (_, .none), (_, .obsolete), (_, .copies): .p
        }
    }

    /// Where a move has copied it that is cancelled.
    var cancelled: CollectionPlace? {
        switch list {
        case .none, .originals: nil
        case .obsolete: state == .absent ? nil : .y
        case .copies: .q
        }
    }

    /// Whether it has a record that a property list cannot hold, which keeps moves from their end.
    var hasNull: Bool { state == .copying || cancelled != nil }
}

extension CollectionPlace {
    /// Where collections are, and where they are moved to; the latter is down.
    static let p = Self(backend: "p", format: .json)
    static let q = Self(backend: "q", format: .plist)
    /// Anywhere else.
    static let w = Self(backend: "w", format: .json)
    /// Where there are originals, and where something is to be removed, which is down.
    static let x = Self(backend: "x", format: .json)
    static let y = Self(backend: "y", format: .plist)
}
