import CRUDModel

/// Following changes.
extension Repository {
    /// The changes of the records, one after another, without an end: after those that have happened it waits for
    /// others.
    ///
    /// ```swift
    /// for try await change in users.changes(after: cursor) {
    ///     switch change.kind {
    ///     case .saved(let user): index.add(user.item)
    ///     case .removed(let id), .unmatched(let id): index.remove(id)
    ///     }
    ///     cursor = change.cursor
    /// }
    /// ```
    ///
    /// No record that has changed is missed, and its newest state always comes; states in between may be left out. It
    /// survives lost connections and restarts of the daemon, see ``ChangeSequence``.
    ///
    /// - Parameters:
    ///   - query: which records; it must have neither an order nor a limit. A record that the condition excludes, or
    ///     excludes now, is ``Change/Kind/unmatched(_:)``.
    ///   - cursor: ``Change/cursor`` of the last change that was processed, whose text may have been stored;
    ///     ``Cursor/start`` for every record and then what changes, ``Cursor/now`` for what changes from the beginning
    ///     of the iteration on.
    public func changes(_ query: Query<Model> = Query(), after cursor: Cursor = .start) -> ChangeSequence<Model> {
        changes(query, after: cursor, as: Model.self)
    }

    /// The changes of the records as values of another type, such as one with few of the properties.
    public func changes<Part: Decodable & Sendable>(
        _ query: Query<Model>, after cursor: Cursor = .start, as type: Part.Type
    ) -> ChangeSequence<Part> {
        ChangeSequence(
            store: store, query: Result { try query.changeQuery(after: cursor) }, decode: { try $0.decoded() },
            report: report)
    }
}

/// Following changes page by page.
extension Repository {
    /// The changes of the records in pages, for a view that stores what a page leads to and its cursor in one
    /// transaction.
    ///
    /// ```swift
    /// for try await page in orders.changePages(after: cursor) {
    ///     try await totals.transaction { totals in
    ///         for change in page.changes { try apply(change, to: &totals) }
    ///         try totals.collection("cursors", of: String.self) { try $0.upsert(page.cursor.text, id: "totals") }
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - query: which records; it must have neither an order nor a limit.
    ///   - cursor: ``ChangePageSequence/Page/cursor`` of the last page that was applied, ``Cursor/start`` or
    ///     ``Cursor/now``.
    ///   - limit: the most changes of a page, from 1 to the daemon's limit `query_limit` (10000); nil: 1000.
    public func changePages(
        _ query: Query<Model> = Query(), after cursor: Cursor = .start, limit: Int? = nil
    ) -> ChangePageSequence<Model> {
        let query = Result {
            var query = try query.changeQuery(after: cursor)
            query.limit = limit
            return query
        }
        return ChangePageSequence(store: store, query: query, decode: { try $0.decoded() }, report: report)
    }
}

extension Repository where Model: Queryable {
    /// The changes of the records for which a condition is true; see ``changes(_:after:)``. The closure is called at
    /// once, in the caller's isolation.
    public func changes(
        after cursor: Cursor = .start, _ condition: (Model.Properties) -> Condition<Model>
    ) -> ChangeSequence<Model> {
        changes(Query(condition), after: cursor)
    }
}

extension Query {
    /// - Throws: `invalid_query` if the query has an order or a limit, which changes have not.
    fileprivate func changeQuery(after cursor: Cursor) throws -> ChangeQuery {
        let query = try recordQuery()
        guard limit == nil, query.sort.keys.isEmpty else {
            throw CRUDError(.invalidQuery, "a query of changes has neither an order nor a limit")
        }
        return ChangeQuery(query.selection, after: cursor, fields: query.fields)
    }
}
