import CRUDModel

/// The changes of a collection, one after another, without an end: after those that have happened it waits for others.
///
/// Changes are read in pages during iteration: nothing is asked for before the previous page has been consumed, and one
/// page is in memory. Each iterator begins again.
///
/// A record whose stored bytes cannot be decoded is left out; ``ChangePage/corrupt`` and the daemon's log name it.
///
/// It survives lost connections and restarts of the daemon: while the daemon, or the collection's backend, is
/// unavailable, it retries with pauses that grow from 10 milliseconds to some seconds. It ends by an error, or with the
/// task: a cancelled task gets a `CancellationError` at once, and the daemon is told. A deadline of
/// ``CRUDClient/withDeadline(in:_:)`` ends it, too.
///
/// Any number of tasks may follow through one client. Of those that have nothing to receive, as many wait in the daemon
/// as its limit `followers_per_session` allows (1024); the others ask again, with the same pauses.
public struct ChangeSequence<Item: Sendable>: AsyncSequence, Sendable {
    let store: any RecordStore
    let query: Result<ChangeQuery, any Error>
    let decode: @Sendable (EncodedItem) throws -> Item
    /// What is told of records that cannot be decoded; nil: they are errors.
    var report: (@Sendable (UndecodableRecord) -> Void)?

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, query: query, decode: decode, report: report)
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let store: any RecordStore
        /// For the next page; nil after an error.
        fileprivate var query: Result<ChangeQuery, any Error>?
        fileprivate let decode: @Sendable (EncodedItem) throws -> Item
        fileprivate let report: (@Sendable (UndecodableRecord) -> Void)?
        /// What is left of the page, and its cursor.
        private var page: ArraySlice<Change<EncodedItem>.Kind> = []
        private var pageCursor: Cursor?

        fileprivate init(
            store: any RecordStore, query: Result<ChangeQuery, any Error>,
            decode: @escaping @Sendable (EncodedItem) throws -> Item,
            report: (@Sendable (UndecodableRecord) -> Void)?
        ) {
            self.report = report
            self.store = store
            self.query = query
            self.decode = decode
        }

        /// The next change; waits until there is one. Nil only after an error.
        ///
        /// - Throws: ``CRUDError/Code/cursorExpired``: begin again at ``Cursor/start``;
        ///   ``CRUDError/Code/unsupported`` if the collection does not remember its changes;
        ///   ``CRUDError/Code/invalidQuery``; a `DecodingError`, whose description names the record, if an item is not
        ///   an `Item`, unless that is reported; see ``Repository/reportingUndecodable(_:)``.
        public mutating func next() async throws -> Change<Item>? {
            guard let result = query.take() else { return nil }
            var query = try result.get()
            while true {
                if let next = try takeChange(&query) {
                    self.query = .success(query)
                    return Change(next, cursor: query.after)
                }
                let next = try await ChangePoll.page(of: store, query)
                page = next.changes[...]
                pageCursor = next.cursor
                if page.isEmpty { query.after = next.cursor }
            }
        }

        /// The next change of the page that is not reported instead; nil if there is none.
        private mutating func takeChange(_ query: inout ChangeQuery) throws -> Change<Item>.Kind? {
            while let next = page.popFirst() {
                // Behind the last change of the page, and only there, none of it would come again.
                if page.isEmpty, let pageCursor { query.after = pageCursor }
                do {
                    return try next.map(decode)
                } catch {
                    guard case .saved(let record) = next else { throw error }
                    try Undecodable.report(error, record.id, record.revision, in: store.collection, to: report)
                }
            }
            return nil
        }
    }
}

extension RecordStore {
    /// The changes of the collection, with items of any type: ``EncodedItem/decoded(as:)`` decodes one.
    ///
    /// - Parameters:
    ///   - cursor: ``Change/cursor`` of the last change that was processed, ``Cursor/start`` or ``Cursor/now``.
    ///   - selection: which records. A change of one that the prefix excludes is left out; one that the filter excludes
    ///     is ``Change/Kind/unmatched(_:)``.
    ///   - fields: the items have these properties only, nested as they were; nil: all of them.
    public func changes(
        after cursor: Cursor = .start, in selection: RecordSelection = .all, fields: [PropertyPath]? = nil
    ) -> ChangeSequence<EncodedItem> {
        ChangeSequence(
            store: self, query: .success(ChangeQuery(selection, after: cursor, fields: fields)), decode: { $0 })
    }
}
