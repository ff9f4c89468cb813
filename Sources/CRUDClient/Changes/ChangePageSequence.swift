import CRUDModel

/// The changes of a collection in pages, without an end: what a view applies together with its cursor.
///
/// It behaves as a ``ChangeSequence`` does, except that an element is a page. Pages that say nothing are left out, but
/// the first one comes even if it is empty.
public struct ChangePageSequence<Item: Sendable>: AsyncSequence, Sendable {
    let store: any RecordStore
    let query: Result<ChangeQuery, any Error>
    let decode: @Sendable (EncodedItem) throws -> Item
    /// What is told of records that cannot be decoded; nil: they are errors.
    let report: (@Sendable (UndecodableRecord) -> Void)?

    /// A page of changes, in the order in which they took effect.
    public struct Page: Sendable {
        /// A record is in it once, at the place of its last change.
        public var changes: [Change<Item>.Kind]
        /// Where the next page begins: to be stored together with what the changes lead to.
        public var cursor: Cursor
        /// Whether the next page has changes already; if not, this one was up to date when it was read.
        public var hasMore: Bool
        /// The ids of records that have changed, but are not on the page because their stored bytes cannot be decoded;
        /// at most 100.
        public var corrupt: [String]

        public init(changes: [Change<Item>.Kind], cursor: Cursor, hasMore: Bool, corrupt: [String] = []) {
            self.changes = changes
            self.cursor = cursor
            self.hasMore = hasMore
            self.corrupt = corrupt
        }
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, query: query, decode: decode, report: report)
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let store: any RecordStore
        /// For the next page; nil after an error.
        fileprivate var query: Result<ChangeQuery, any Error>?
        fileprivate let decode: @Sendable (EncodedItem) throws -> Item
        fileprivate let report: (@Sendable (UndecodableRecord) -> Void)?
        private var isFirst = true

        fileprivate init(
            store: any RecordStore, query: Result<ChangeQuery, any Error>,
            decode: @escaping @Sendable (EncodedItem) throws -> Item,
            report: (@Sendable (UndecodableRecord) -> Void)?
        ) {
            self.store = store
            self.query = query
            self.decode = decode
            self.report = report
        }

        /// The next page; waits until there is one. Nil only after an error.
        ///
        /// - Throws: the errors of ``ChangeSequence/Iterator/next()``.
        public mutating func next() async throws -> Page? {
            guard let result = query.take() else { return nil }
            var query = try result.get()
            while true {
                let page = try await ChangePoll.page(of: store, query)
                query.after = page.cursor
                guard isFirst || !page.changes.isEmpty || !page.corrupt.isEmpty else { continue }
                let decoded = try page.changes.compactMap(decoded)
                isFirst = false
                self.query = .success(query)
                return Page(changes: decoded, cursor: page.cursor, hasMore: page.hasMore, corrupt: page.corrupt)
            }
        }

        /// The change; nil if its record is reported instead.
        private func decoded(_ change: Change<EncodedItem>.Kind) throws -> Change<Item>.Kind? {
            do {
                return try change.map(decode)
            } catch {
                guard case .saved(let record) = change else { throw error }
                try Undecodable.report(error, record.id, record.revision, in: store.collection, to: report)
                return nil
            }
        }
    }
}

extension RecordStore {
    /// The changes of the collection in pages, with items of any type; see ``Repository/changePages(_:after:limit:)``.
    ///
    /// - Parameters:
    ///   - cursor: ``ChangePageSequence/Page/cursor`` of the last page that was applied, ``Cursor/start`` or
    ///     ``Cursor/now``.
    ///   - selection: which records.
    ///   - fields: the items have these properties only, nested as they were; nil: all of them.
    ///   - limit: the most changes of a page; nil: 1000.
    public func changePages(
        after cursor: Cursor = .start, in selection: RecordSelection = .all, fields: [PropertyPath]? = nil,
        limit: Int? = nil
    ) -> ChangePageSequence<EncodedItem> {
        ChangePageSequence(
            store: self, query: .success(ChangeQuery(selection, after: cursor, fields: fields, limit: limit)),
            decode: { $0 }, report: nil)
    }
}
