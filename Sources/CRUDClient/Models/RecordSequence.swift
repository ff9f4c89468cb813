/// The records that a query selects, read in pages while they are asked for.
///
/// Each iterator walks anew. It holds one page at a time.
public struct RecordSequence<Model: Codable & Sendable>: AsyncSequence, Sendable {
    let store: any RecordStore
    let query: Query<Model>

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, query: query)
    }

    public struct Iterator: AsyncIteratorProtocol {
        /// What a store answers where no limit is given, and never has to refuse.
        private static var usualPage: Int { 1000 }

        private let store: any RecordStore
        private let query: Query<Model>
        /// How many records are still wanted; nil: all.
        private var wanted: Int?
        private var page: ArraySlice<Versioned<Model>> = []
        private var place = Place.start

        private enum Place {
            case start
            case behind(Cursor)
            case end
        }

        init(store: any RecordStore, query: Query<Model>) {
            self.store = store
            self.query = query
            wanted = query.limit
        }

        /// The next record; nil behind the last one, and after an error.
        ///
        /// - Throws: what ``Repository/fetch(_:)-(Query<Model>)`` throws.
        public mutating func next() async throws -> Model? {
            while page.isEmpty {
                guard wanted != 0 else { return nil }
                var request = try query.recordQuery()
                switch place {
                case .start: break
                case .behind(let cursor): request.cursor = cursor
                case .end: return nil
                }
                if let wanted, wanted < Self.usualPage { request.limit = wanted }
                place = .end
                let answer = try await store.query(request, as: Model.self)
                page = answer.records.prefix(wanted ?? .max)
                wanted = wanted.map { $0 - page.count }
                place = answer.next.map(Place.behind) ?? .end
            }
            return page.removeFirst().item
        }
    }
}
