import CRUDModel

/// Which records of a model's collection are wanted, in what order, and how many.
///
/// ```swift
/// let eldest = Query<User> { $0.age >= 18 && !($0.name == "Bob") }
///     .sorted(by: \.age, .descending)
///     .limited(to: 10)
/// let users = try await repository.fetch(eldest)
/// ```
///
/// It is a value: it can be kept, handed around and refined. `Query<User>()` is all of them, by id.
public struct Query<Model>: Sendable {
    /// Which way a property is sorted.
    public enum Direction: Sendable {
        /// Missing and null first, then false, true, numbers, strings by code point, lists, objects.
        case ascending
        /// The other way round.
        case descending
    }

    private let filter: Result<Filter, any Error>?
    private var sort = SortOrder()
    private var prefix: String?
    /// The most records that are wanted; nil: all.
    private(set) var limit: Int?

    /// Every record, by id.
    public init() {
        filter = nil
    }

    /// The records that the condition is true of.
    ///
    /// - Parameter condition: is handed the properties of the model.
    public init(_ condition: (Model.Properties) -> Condition<Model>) where Model: Queryable {
        filter = condition(Model.properties).filter
    }

    /// The records that a condition is true of.
    public init(_ condition: Condition<Model>) {
        filter = condition.filter
    }

    /// The same records, sorted by a property where the earlier ones tie; by id where all of them do.
    public func sorted<Value>(
        by property: KeyPath<Model.Properties, Property<Model, Value>>, _ direction: Direction = .ascending
    ) -> Query where Model: Queryable {
        var query = self
        let path = Model.properties[keyPath: property].path
        query.sort.keys.append(SortKey(path, isDescending: direction == .descending))
        return query
    }

    /// At most so many of them, the first.
    ///
    /// - Parameter count: 0 or more.
    public func limited(to count: Int) -> Query {
        var query = self
        query.limit = max(0, count)
        return query
    }

    /// Those of them whose id begins with `prefix`, compared by code point.
    public func withIDs(startingWith prefix: String) -> Query {
        var query = self
        query.prefix = prefix
        return query
    }

    /// The query in the terms of a ``RecordStore``, whose limit is that of a page.
    ///
    /// - Throws: what keeps a value of the condition from being compared.
    func recordQuery() throws -> RecordQuery {
        RecordQuery(RecordSelection(filter: try filter?.get(), prefix: prefix), sort: sort)
    }
}
