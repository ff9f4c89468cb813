import CRUDModel

/// Asking for records.
extension Repository {
    /// Reads the records that a query selects.
    ///
    /// They are read in pages of a thousand; see ``records(_:)-(Query<Model>)``, which does not hold them all.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``; a `DecodingError` where an item is no `Model`.
    public func fetch(_ query: Query<Model>) async throws -> [Model] {
        var models: [Model] = []
        for try await model in records(query) { models.append(model) }
        return models
    }

    /// Reads every record, by id.
    ///
    /// - Throws: a `DecodingError` where an item is no `Model`.
    public func fetchAll() async throws -> [Model] {
        try await fetch(Query())
    }

    /// The records that a query selects, one after the other. They are read in pages underneath, while they are asked for.
    ///
    /// A record that is there throughout, with the members that the query speaks of unchanged, comes exactly once,
    /// whatever else is stored meanwhile.
    ///
    /// ```swift
    /// for try await user in users.records(Query().sorted(by: \.name)) { print(user.name) }
    /// ```
    public func records(_ query: Query<Model> = Query()) -> RecordSequence<Model> {
        RecordSequence(store: store, query: query)
    }

    /// Reads the first record that a query selects.
    ///
    /// - Returns: nil where there is none.
    /// - Throws: ``CRUDError/Code/invalidQuery``; a `DecodingError` where the item is no `Model`.
    public func first(_ query: Query<Model> = Query()) async throws -> Model? {
        let records = records(query.limited(to: min(1, query.limit ?? 1))).makeAsyncIterator()
        var iterator = records
        return try await iterator.next()
    }

    /// Counts the records that a query selects; at most its limit, if it has one.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``.
    public func count(_ query: Query<Model> = Query()) async throws -> Int {
        let count = try await store.count(query.recordQuery().selection)
        return min(count, query.limit ?? count)
    }

    /// Deletes the records that a query selects.
    ///
    /// Each deletion is atomic, all of them together are not: records that others store meanwhile may or may not go.
    ///
    /// - Parameter query: its order does not matter, and it must have no limit.
    /// - Returns: how many were deleted.
    /// - Throws: ``CRUDError/Code/invalidQuery``; ``CRUDError/Code/outcomeUnknown`` where it was cut short.
    @discardableResult
    public func removeAll(_ query: Query<Model>) async throws -> Int {
        guard query.limit == nil else { throw CRUDError(.invalidQuery, "what is to be removed cannot have a limit") }
        return try await store.deleteMatching(query.recordQuery().selection)
    }

    /// Deletes every record of the collection.
    ///
    /// Each deletion is atomic, all of them together are not: records that others store meanwhile may or may not go.
    ///
    /// - Returns: how many were deleted.
    /// - Throws: ``CRUDError/Code/outcomeUnknown`` where it was cut short.
    @discardableResult
    public func removeAll() async throws -> Int {
        try await store.deleteMatching(.all)
    }
}

/// The same, with the condition alone. The closure is run where the caller is.
extension Repository where Model: Queryable {
    /// Reads the records that a condition is true of, by id; see ``fetch(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func fetch(_ condition: (Model.Properties) -> Condition<Model>) async throws
        -> [Model]
    {
        try await fetch(Query(condition))
    }

    /// The records that a condition is true of, by id; see ``records(_:)-(Query<Model>)``.
    public func records(_ condition: (Model.Properties) -> Condition<Model>) -> RecordSequence<Model> {
        records(Query(condition))
    }

    /// Reads the first record by id that a condition is true of; see ``first(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func first(_ condition: (Model.Properties) -> Condition<Model>) async throws
        -> Model?
    {
        try await first(Query(condition))
    }

    /// Counts the records that a condition is true of; see ``count(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func count(_ condition: (Model.Properties) -> Condition<Model>) async throws -> Int {
        try await count(Query(condition))
    }

    /// Deletes the records that a condition is true of; see ``removeAll(_:)-(Query<Model>)``.
    @discardableResult
    public nonisolated(nonsending) func removeAll(_ condition: (Model.Properties) -> Condition<Model>) async throws
        -> Int
    {
        try await removeAll(Query(condition))
    }
}
