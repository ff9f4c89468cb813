/// The records that a query selects, read in pages during iteration.
///
/// Each iterator executes the query again, and keeps one page at a time.
public struct RecordSequence<Model: Codable & Sendable>: AsyncSequence, Sendable {
    let store: any RecordStore
    let query: Query<Model>

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, query: query)
    }

    public struct Iterator: AsyncIteratorProtocol {
        private let store: any RecordStore
        private let query: Query<Model>
        /// How many records the query's limit still allows; nil: any number.
        private var remaining: Int?
        private var page: ArraySlice<Versioned<Model>> = []
        private var place = Place.start

        private enum Place {
            case start
            case after(Cursor)
            case end
        }

        init(store: any RecordStore, query: Query<Model>) {
            self.store = store
            self.query = query
            remaining = query.limit
        }

        /// The next record; nil after the last one, and after an error.
        ///
        /// - Throws: the errors of ``Repository/fetch(_:)-(Query<Model>)``.
        public mutating func next() async throws -> Model? {
            while page.isEmpty {
                guard remaining != 0 else { return nil }
                var request = try query.recordQuery()
                switch place {
                case .start: break
                case .after(let cursor): request.cursor = cursor
                case .end: return nil
                }
                // A store may allow no more than its default.
                if let remaining, remaining < DefaultLimits.pageRecords { request.limit = remaining }
                place = .end
                let result = try await store.query(request, as: Model.self)
                page = result.records.prefix(remaining ?? .max)
                remaining = remaining.map { $0 - page.count }
                place = result.next.map(Place.after) ?? .end
            }
            return page.removeFirst().item
        }
    }
}
