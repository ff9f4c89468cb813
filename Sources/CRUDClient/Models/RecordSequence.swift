/// The records that a query selects, read in pages during iteration.
///
/// Each iterator executes the query again, and keeps one page at a time.
public struct RecordSequence<Model: Decodable & Sendable>: AsyncSequence, Sendable {
    let store: any RecordStore
    let query: Result<RecordQuery, any Error>
    let limit: Int?
    /// What is told of records that cannot be decoded; nil: they are errors.
    let report: (@Sendable (UndecodableRecord) -> Void)?

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, query: query, report: report, remaining: limit)
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let store: any RecordStore
        fileprivate let query: Result<RecordQuery, any Error>
        fileprivate let report: (@Sendable (UndecodableRecord) -> Void)?
        /// How many records the query's limit still allows; nil: any number.
        fileprivate var remaining: Int?
        fileprivate var page: ArraySlice<Versioned<DecodedItem<Model>>> = []
        fileprivate var place = Place.start

        fileprivate enum Place {
            case start
            case after(Cursor)
            case end
        }

        /// The next record; nil after the last one, and after an error.
        ///
        /// - Throws: the errors of ``Repository/fetch(_:)-(Query<Model>)``.
        public mutating func next() async throws -> Model? {
            try await nextVersioned()?.item
        }

        /// The next record with its revision.
        mutating func nextVersioned() async throws -> Versioned<Model>? {
            while true {
                guard remaining != 0 else { return nil }
                if page.isEmpty, try await !readPage() { return nil }
                guard let next = page.popFirst() else { continue }
                do {
                    guard let record = try next.decoded(in: store.collection, report) else { continue }
                    remaining = remaining.map { $0 - 1 }
                    return record
                } catch {
                    (page, place) = ([], .end)
                    throw error
                }
            }
        }

        /// Reads the next page; false if there is none.
        private mutating func readPage() async throws -> Bool {
            let cursor: Cursor?
            switch place {
            case .start: cursor = nil
            case .after(let next): cursor = next
            case .end: return false
            }
            place = .end
            var request = try query.get()
            request.cursor = cursor
            // Without a limit, a page has a thousand records.
            if let remaining, remaining < DefaultLimits.pageRecords { request.limit = remaining }
            let result = try await store.page(request, as: DecodedItem<Model>.self)
            page = result.records[...]
            place = result.next.map(Place.after) ?? .end
            return true
        }
    }
}
