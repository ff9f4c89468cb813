import CRUDModel
import CRUDPluginKit

/// Chooses the way to the records of a query.
struct QueryPlanner {
    /// A way to candidates.
    enum Access {
        /// Every record, by id.
        case primaryKey
        /// The records of some ranges of an index.
        case ranges(PropertyIndex, [IndexRange])
        /// Along an index, which has the order of the sort's first key; within a range, where there is one.
        case inOrder(PropertyIndex, IndexRange?)
    }

    private struct Candidate {
        var index: PropertyIndex
        var ranges: [IndexRange]

        /// Whether the index has all of it in the order of ids.
        var isPoint: Bool { ranges.isEmpty || ranges.count == 1 && ranges[0].isPoint }
    }

    /// So many records are looked at without a thought; it takes ten milliseconds.
    private static let few = 10_000

    private let session: ReadSession
    private let collection: SQLiteCollection
    private let indexes: [PropertyIndex]
    private let candidates: [Candidate]

    init(_ session: ReadSession, _ collection: SQLiteCollection, _ filter: Filter?) {
        self.session = session
        self.collection = collection
        indexes = collection.indexes
        candidates = indexes.compactMap { index in
            filter.flatMap { IndexRange.ranges($0, index.path) }.map { Candidate(index: index, ranges: $0) }
        }
    }

    /// The way to the first records of an order.
    ///
    /// Few candidates are sorted; an index in the order of the sort, or a single value of one in the order of ids, is
    /// followed only as far as the page needs; for many others, unsorted, walking all records by id finds a page sooner.
    func access(for order: SortOrder) throws(StorageFailure) -> Access {
        if order.keys.isEmpty, candidates.count == 1, candidates[0].isPoint { return Self.ranges(candidates[0]) }
        let narrowest = try narrowest()
        if let narrowest, narrowest.size <= Self.few { return Self.ranges(narrowest.candidate) }
        guard let key = order.keys.first else {
            return candidates.first { $0.isPoint }.map(Self.ranges) ?? .primaryKey
        }
        if let index = indexes.first(where: { $0.path == key.path }) {
            let ranges = candidates.first { $0.index.path == key.path }?.ranges
            return .inOrder(index, ranges?.count == 1 ? ranges?.first : nil)
        }
        return narrowest.map { Self.ranges($0.candidate) } ?? .primaryKey
    }

    /// The way to all records that match.
    func access() throws(StorageFailure) -> Access {
        try narrowest().map { Self.ranges($0.candidate) } ?? .primaryKey
    }

    private static func ranges(_ candidate: Candidate) -> Access {
        .ranges(candidate.index, candidate.ranges)
    }

    /// The candidate with the fewest entries, and how many they are, counted up to one more than few.
    private func narrowest() throws(StorageFailure) -> (candidate: Candidate, size: Int)? {
        var narrowest: (candidate: Candidate, size: Int)?
        for candidate in candidates {
            let limit = narrowest?.size ?? Self.few + 1
            var size = 0
            for range in candidate.ranges where size < limit {
                for run in [range.run, range.inexactRun].compactMap(\.self) where size < limit {
                    size += try count(run, candidate.index, limit: limit - size)
                }
            }
            if narrowest == nil || size < limit { narrowest = (candidate, size) }
        }
        return narrowest
    }

    private func count(
        _ run: IndexRange.Run, _ index: PropertyIndex, limit: Int
    ) throws(StorageFailure) -> Int {
        let statement = try session.statement(run.isPoint ? .groupSize : .rangeSize, collection, index)
        defer { statement.reset() }
        try session.bind(run, statement)
        try session.check(statement.bind(4, integer: Int64(limit)))
        return try session.step(statement) ? Int(statement.integer(0)) : 0
    }
}
