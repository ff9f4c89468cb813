public import CRUDModel

/// A condition on the records of one model: what the closure of a query returns.
///
/// It is true, false or unknown, as in SQL, and selects a record if it is true: `!` of unknown is unknown.
public struct Condition<Model>: Sendable {
    /// The condition as a filter of the wire protocol, or why it cannot be converted to one.
    let filter: Result<Filter, any Error>

    /// A condition that is not checked against the model, for example one that a person has typed.
    public init(_ filter: Filter) {
        self.filter = .success(filter)
    }

    init(_ filter: () throws -> Filter) {
        self.filter = Result(catching: filter)
    }

    /// True if both are true.
    public static func && (left: Condition, right: Condition) -> Condition {
        Condition { .and(try left.conjuncts + right.conjuncts) }
    }

    /// True if one is true.
    public static func || (left: Condition, right: Condition) -> Condition {
        Condition { .or(try left.disjuncts + right.disjuncts) }
    }

    /// True if the other is false.
    public static prefix func ! (condition: Condition) -> Condition {
        Condition { .not(try condition.filter.get()) }
    }

    private var conjuncts: [Filter] {
        get throws {
            let filter = try filter.get()
            return if case .and(let filters) = filter { filters } else { [filter] }
        }
    }

    private var disjuncts: [Filter] {
        get throws {
            let filter = try filter.get()
            return if case .or(let filters) = filter { filters } else { [filter] }
        }
    }
}
