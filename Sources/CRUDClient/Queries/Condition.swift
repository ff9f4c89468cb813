public import CRUDModel

/// A condition on the records of one model: what the closure of a query returns.
///
/// It is true, false or unknown, as in SQL, and selects a record where it is true: `!` of unknown is unknown.
public struct Condition<Model>: Sendable {
    /// The condition in the terms of the wire protocol, or why it cannot be said in them.
    let filter: Result<Filter, any Error>

    /// A condition that is made of strings, say one that a person has typed. Nothing checks that it fits the model.
    public init(_ filter: Filter) {
        self.filter = .success(filter)
    }

    init(_ filter: () throws -> Filter) {
        self.filter = Result(catching: filter)
    }

    /// True where both are.
    public static func && (left: Condition, right: Condition) -> Condition {
        Condition { .and(try left.conjuncts + right.conjuncts) }
    }

    /// True where one is.
    public static func || (left: Condition, right: Condition) -> Condition {
        Condition { .or(try left.disjuncts + right.disjuncts) }
    }

    /// True where the other is false.
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
