import CRUDModel

/// Records with their revisions, and single pages.
extension Repository {
    /// Reads the records that a query selects with their revisions, which make later writes conditional.
    ///
    /// - Throws: ``CRUDError/Code/invalidQuery``; a `DecodingError`, whose description names the record, if an item is
    ///   not a `Model`, unless that is reported; see ``reportingUndecodable(_:)``.
    public func fetchVersioned(_ query: Query<Model> = Query()) async throws -> [Versioned<Model>] {
        var iterator = records(query).makeAsyncIterator()
        var records: [Versioned<Model>] = []
        while let record = try await iterator.nextVersioned() { records.append(record) }
        return records
    }

    /// Reads one page of the records that a query selects, for an interface that shows page after page.
    ///
    /// ```swift
    /// var page = try await users.page(query, limit: 50)
    /// while let next = page.next { page = try await users.page(query, after: next, limit: 50) }
    /// ```
    ///
    /// All pages together have every record that exists throughout, with the members that the query uses unchanged,
    /// exactly once. The text of the cursor may be passed to a browser and come back.
    ///
    /// - Parameters:
    ///   - query: which records, in which order; it must not have a limit of its own.
    ///   - cursor: ``RecordPage/next`` of the previous page of the same query; nil: the first page.
    ///   - limit: the most records of the page, at least 1; nil: 1000. The store may allow fewer. Any page may be
    ///     shorter, and even empty: only the last one has no ``RecordPage/next``.
    /// - Throws: ``CRUDError/Code/invalidQuery``, also for a cursor of another query; a `DecodingError` if an item is
    ///   not a `Model`, unless that is reported; see ``reportingUndecodable(_:)``.
    public func page(
        _ query: Query<Model> = Query(), after cursor: Cursor? = nil, limit: Int? = nil
    ) async throws -> RecordPage<Model> {
        try await page(query, as: Model.self, after: cursor, limit: limit)
    }

    /// Reads one page as ``page(_:after:limit:)`` does, of values of another type, such as one with few of the
    /// properties.
    ///
    /// - Parameters:
    ///   - query: which records, in which order, and with which properties.
    ///   - type: the type of the items.
    ///   - cursor: ``RecordPage/next`` of the previous page of the same query; nil: the first page.
    ///   - limit: the most records of the page, at least 1; nil: 1000.
    public func page<Part: Decodable & Sendable>(
        _ query: Query<Model>, as type: Part.Type, after cursor: Cursor? = nil, limit: Int? = nil
    ) async throws -> RecordPage<Part> {
        guard query.limit == nil else {
            throw CRUDError(.invalidQuery, "a query that is read in pages has no limit of its own: pass `limit`")
        }
        var request = try query.recordQuery()
        request.cursor = cursor
        request.limit = limit
        let page = try await store.page(request, as: DecodedItem<Part>.self)
        return RecordPage(
            records: try page.records.compactMap { try $0.decoded(in: store.collection, report) }, next: page.next,
            plan: page.plan, corrupt: page.corrupt)
    }
}

/// The same, with a condition only. The closure is called in the caller's isolation.
extension Repository where Model: Queryable {
    /// Reads the records for which a condition is true with their revisions, by id; see
    /// ``fetchVersioned(_:)-(Query<Model>)``.
    public nonisolated(nonsending) func fetchVersioned(
        _ condition: (Model.Properties) -> Condition<Model>
    ) async throws -> [Versioned<Model>] {
        try await fetchVersioned(Query(condition))
    }

    /// Reads one page of the records for which a condition is true, by id; see ``page(_:after:limit:)``.
    public nonisolated(nonsending) func page(
        after cursor: Cursor? = nil, limit: Int? = nil, _ condition: (Model.Properties) -> Condition<Model>
    ) async throws -> RecordPage<Model> {
        try await page(Query(condition), after: cursor, limit: limit)
    }
}
