import CRUDModel

/// A selection of a model's records, with their order and a limit.
///
/// ```swift
/// let eldest = Query<User> { $0.age >= 18 && !($0.name == "Bob") }
///     .sorted(by: \.age, .descending)
///     .limited(to: 10)
/// let users = try await repository.fetch(eldest)
/// ```
///
/// It is a value: it can be stored, passed on and refined. `Query<User>()` selects all records, by id.
public struct Query<Model>: Sendable {
    /// The direction in which a property is sorted.
    public enum Direction: Sendable {
        /// Missing and null first, then false, true, numbers, strings by code point, lists, objects.
        case ascending
        /// The reverse.
        case descending
    }

    private var condition: Condition<Model>?
    private var sort = SortOrder()
    private var prefix: String?
    private var fields: [PropertyPath]?
    /// The maximum number of records; nil: all.
    private(set) var limit: Int?

    /// Every record, by id.
    public init() {
        condition = nil
    }

    /// The records for which a condition is true.
    ///
    /// - Parameter condition: gets the properties of the model.
    public init(_ condition: (Model.Properties) -> Condition<Model>) where Model: Queryable {
        self.condition = condition(Model.properties)
    }

    /// The records for which a condition is true.
    public init(_ condition: Condition<Model>) {
        self.condition = condition
    }

    /// Those of the records for which another condition is true, too.
    ///
    /// ```swift
    /// var query = Query<User>().sorted(by: \.name)
    /// if let city { query = query.filter { $0.address.city == city } }
    /// ```
    ///
    /// - Parameter condition: gets the properties of the model.
    public func filter(_ condition: (Model.Properties) -> Condition<Model>) -> Query where Model: Queryable {
        filter(condition(Model.properties))
    }

    /// Those of the records for which another condition is true, too.
    public func filter(_ condition: Condition<Model>) -> Query {
        var query = self
        query.condition = query.condition.map { $0 && condition } ?? condition
        return query
    }

    /// The same records, sorted by a property if the earlier ones tie, and by id if all of them do.
    public func sorted<Value>(
        by property: KeyPath<Model.Properties, Property<Model, Value>>, _ direction: Direction = .ascending
    ) -> Query where Model: Queryable {
        var query = self
        let path = Model.properties[keyPath: property].path
        query.sort.keys.append(SortKey(path, isDescending: direction == .descending))
        return query
    }

    /// At most so many of the records, the first ones.
    ///
    /// - Parameter count: 0 or more.
    public func limited(to count: Int) -> Query {
        var query = self
        query.limit = max(0, count)
        return query
    }

    /// The records whose id begins with `prefix`, compared by code point.
    public func withIDs(startingWith prefix: String) -> Query {
        var query = self
        query.prefix = prefix
        return query
    }

    /// The same records with these properties only; they are read as a type that needs no others, by
    /// ``Repository/fetch(_:as:)``.
    public func selecting<each Value>(
        _ properties: repeat KeyPath<Model.Properties, Property<Model, each Value>>
    ) -> Query where Model: Queryable {
        var query = self
        var fields: [PropertyPath] = []
        for property in repeat each properties { fields.append(Model.properties[keyPath: property].path) }
        query.fields = fields
        return query
    }

    /// The query for a ``RecordStore``, whose limit is that of a page.
    ///
    /// - Throws: the error of a value that cannot be compared.
    func recordQuery() throws -> RecordQuery {
        RecordQuery(RecordSelection(filter: try condition?.filter.get(), prefix: prefix), sort: sort, fields: fields)
    }
}
