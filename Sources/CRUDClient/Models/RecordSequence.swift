/// The records that a query selects, read in pages during iteration.
///
/// Each iterator executes the query again, and keeps one page at a time.
public struct RecordSequence<Model: Decodable & Sendable>: AsyncSequence, Sendable {
    let store: any RecordStore
    let query: Result<RecordQuery, any Error>
    let limit: Int?

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, query: query, remaining: limit)
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let store: any RecordStore
        fileprivate let query: Result<RecordQuery, any Error>
        /// How many records the query's limit still allows; nil: any number.
        fileprivate var remaining: Int?
        fileprivate var page: ArraySlice<Versioned<Model>> = []
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
            while page.isEmpty {
                guard remaining != 0 else { return nil }
                let cursor: Cursor?
                switch place {
                case .start: cursor = nil
                case .after(let next): cursor = next
                case .end: return nil
                }
                place = .end
                var request = try query.get()
                request.cursor = cursor
                // Without a limit, a page has a thousand records.
                if let remaining, remaining < DefaultLimits.pageRecords { request.limit = remaining }
                let result = try await store.page(request, as: Model.self)
                page = result.records.prefix(remaining ?? .max)
                remaining = remaining.map { $0 - page.count }
                place = result.next.map(Place.after) ?? .end
            }
            return page.removeFirst().item
        }
    }
}
