import CRUDModel

/// Queries.
extension Repository {
    /// Reads the records that a query selects.
    ///
    /// They are read in pages of a thousand; ``records(_:)-(Query<Model>)`` does not keep all of them in memory.
    ///
    /// A record whose stored bytes cannot be decoded is left out, here and wherever many records are read;
    /// ``RecordPage/corrupt`` and the daemon's log name it.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``; a `DecodingError`, whose description names the record, if an item is
    ///   not a `Model`, unless that is reported; see ``reportingUndecodable(_:)``.
    public func fetch(_ query: Query<Model>) async throws -> [Model] {
        try await fetch(query, as: Model.self)
    }

    /// Reads the records that a query selects as values of another type, such as one with few of the properties.
    ///
    /// ```swift
    /// struct Contact: Decodable { let name: String, email: String }
    /// let contacts = try await users.fetch(Query().selecting(\.name, \.email), as: Contact.self)
    /// ```
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``; a `DecodingError` if an item is not a `Part`.
    public func fetch<Part: Decodable & Sendable>(_ query: Query<Model>, as type: Part.Type) async throws -> [Part] {
        var parts: [Part] = []
        for try await part in records(query, as: type) { parts.append(part) }
        return parts
    }

    /// Reads every record, by id.
    ///
    /// - Throws: a `DecodingError` if an item is not a `Model`.
    public func fetchAll() async throws -> [Model] {
        try await fetch(Query())
    }

    /// The records that a query selects, one after another. They are read in pages during iteration.
    ///
    /// A record that exists throughout, with the members that the query uses unchanged, is returned exactly once,
    /// whatever else is stored meanwhile.
    ///
    /// ```swift
    /// for try await user in users.records(Query().sorted(by: \.name)) { print(user.name) }
    /// ```
    public func records(_ query: Query<Model> = Query()) -> RecordSequence<Model> {
        records(query, as: Model.self)
    }

    /// The records that a query selects, as values of another type, such as one with few of the properties.
    public func records<Part: Decodable & Sendable>(_ query: Query<Model>, as type: Part.Type) -> RecordSequence<Part> {
        RecordSequence(store: store, query: Result { try query.recordQuery() }, limit: query.limit, report: report)
    }

    /// How the first page of the records that a query selects is found: by which index, and with how much work.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``.
    public func explain(_ query: Query<Model> = Query()) async throws -> QueryPlan {
        var request = try query.recordQuery()
        request.fields = []
        request.limit = query.limit.map { min(max($0, 1), DefaultLimits.pageRecords) }
        request.explains = true
        guard let plan = try await store.page(request, as: Ignored.self).plan else {
            throw CRUDError(.unsupported, "the store does not explain queries")
        }
        return plan
    }

    /// Reads the first record that a query selects.
    ///
    /// - Returns: nil if there is none.
    /// - Throws: ``CRUDError/Code/invalidQuery``; a `DecodingError` if the item is not a `Model`.
    public func first(_ query: Query<Model> = Query()) async throws -> Model? {
        let records = records(query.limited(to: min(1, query.limit ?? 1))).makeAsyncIterator()
        var iterator = records
        return try await iterator.next()
    }

    /// Counts the records that a query selects; at most its limit, if it has one. One whose stored bytes cannot be
    /// decoded is counted if the query has no condition.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``.
    public func count(_ query: Query<Model> = Query()) async throws -> Int {
        let count = try await store.count(query.recordQuery().selection)
        return min(count, query.limit ?? count)
    }

    /// Deletes the records that a query selects.
    ///
    /// Each deletion is atomic, all of them together are not: records that are stored meanwhile may or may not be
    /// deleted. One whose stored bytes cannot be decoded is deleted if the query has no condition.
    ///
    /// - Parameter query: must have no limit, and a condition or a prefix of ids that is not empty: every record is
    ///   deleted by `removeAll()` only. Its order is ignored.
    /// - Returns: how many were deleted.
    /// - Throws: ``CRUDError/Code/invalidParams`` for a query of every record; ``CRUDError/Code/invalidQuery``;
    ///   ``CRUDError/Code/outcomeUnknown`` if it was interrupted.
    @discardableResult
    public func removeAll(_ query: Query<Model>) async throws -> Int {
        guard query.limit == nil else {
            throw CRUDError(.invalidQuery, "a query of records to be removed cannot have a limit")
        }
        let selection = try query.recordQuery().selection
        try BulkDeletionRule.check(filter: selection.filter, prefix: selection.prefix.map { Array($0.utf8) })
        return try await store.deleteMatching(selection)
    }

    /// Deletes every record of the collection.
    ///
    /// Each deletion is atomic, all of them together are not: records that are stored meanwhile may or may not be
    /// deleted.
    ///
    /// - Returns: how many were deleted.
    /// - Throws: ``CRUDError/Code/outcomeUnknown`` if it was interrupted.
    @discardableResult
    public func removeAll() async throws -> Int {
        try await store.deleteMatching(.all)
    }
}

extension RecordStore {
    /// Reads a page with at most as many records as the query says, fewer if the store does not allow so many.
    func page<Item: Decodable>(_ query: RecordQuery, as type: Item.Type) async throws -> RecordPage<Item> {
        do {
            return try await self.query(query, as: type)
        } catch let error as CRUDError where error.details.limit == "query_limit" && query.limit != nil {
            var query = query
            query.limit = error.details.maximum
            return try await self.query(query, as: type)
        }
    }
}

/// An item of which nothing is kept.
struct Ignored: Decodable {
    init(from decoder: any Decoder) {}
}

/// The same, with a condition only. The closure is called in the caller's isolation.
extension Repository where Model: Queryable {
    /// Reads the records for which a condition is true, by id; see ``fetch(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func fetch(_ condition: (Model.Properties) -> Condition<Model>) async throws
        -> [Model]
    {
        try await fetch(Query(condition))
    }

    /// The records for which a condition is true, by id; see ``records(_:)-(Query<Model>)``.
    public func records(_ condition: (Model.Properties) -> Condition<Model>) -> RecordSequence<Model> {
        records(Query(condition))
    }

    /// Reads the first record by id for which a condition is true; see ``first(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func first(_ condition: (Model.Properties) -> Condition<Model>) async throws
        -> Model?
    {
        try await first(Query(condition))
    }

    /// Counts the records for which a condition is true; see ``count(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func count(_ condition: (Model.Properties) -> Condition<Model>) async throws -> Int {
        try await count(Query(condition))
    }

    /// Deletes the records for which a condition is true; see ``removeAll(_:)-(Query<Model>)``.
    @discardableResult
    public nonisolated(nonsending) func removeAll(_ condition: (Model.Properties) -> Condition<Model>) async throws
        -> Int
    {
        try await removeAll(Query(condition))
    }
}
