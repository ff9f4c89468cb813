package import CRUDModel
package import CRUDPluginHost

/// Reads that one event loop has gathered in one iteration for one backend.
package final class ReadBatch: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    /// What every read touches. Not checked for exclusive access at run time, which a profile of reads shows: one
    /// thread at a time uses it, and nothing that is called during an access comes back to it.
    private struct State: ~Copyable {
        var reads: [Read] = []
        var results: [ReadResult] = []
        /// Why single reads cannot be made, by their position: their collection could not be opened.
        var refusals: [Int: CRUDError] = [:]
        var arena = ByteArena()
        var found = ByteArena()
        /// What reads have taken of their reserves, by position.
        var extras: [Int: Int] = [:]
    }

    @exclusivity(unchecked) private var state = State()

    package override init(deliver: @escaping @Sendable (WorkItem) -> Void) {
        super.init(deliver: deliver)
    }

    deinit { returnExtras() }

    package override var byteCount: Int { state.arena.count }
    override var isReadable: Bool { state.reads.allSatisfy(\.collection.isOpen) }

    var reads: [Read] { state.reads }

    /// Copies bytes that a read is going to refer to.
    package func store(_ bytes: Span<UInt8>) -> ByteArena.Place { state.arena.append(bytes) }

    /// The bytes of a read's ids or prefix.
    package func bytes(_ place: ByteArena.Place) -> UnsafeRawBufferPointer { state.arena.bytes(place) }

    func append(_ read: Read) { state.reads.append(read) }

    /// Whether it only reads records by id.
    var isByID: Bool { !state.reads.contains { $0.isCount } }

    // MARK: Results

    package func result(at position: Int) -> ReadResult { state.results[position] }

    /// The bytes of an item or a revision that was found.
    package func found(_ place: ByteArena.Place) -> UnsafeRawBufferPointer { state.found.bytes(place) }

    func refuse(_ position: Int, _ error: CRUDError) { state.refusals[position] = error }

    func isRefused(_ position: Int) -> Bool { !state.refusals.isEmpty && state.refusals[position] != nil }

    /// Makes a place for the result of each read, and sets those that are refused.
    func prepareResults() {
        returnExtras()
        state.results = Array(repeating: .records([]), count: state.reads.count)
        for (position, refusal) in state.refusals { state.results[position] = .failed(refusal) }
    }

    func set(_ result: ReadResult, at position: Int) { state.results[position] = result }

    func keep(_ bytes: UnsafeRawBufferPointer) -> ByteArena.Place { state.found.append(bytes) }

    /// Records that one read has found, in a batch of their own: this one has what others have found as well.
    package func separate(_ records: [StoredRecord?]) -> FoundRecords {
        let batch = ReadBatch { _ in }
        return FoundRecords(batch: batch, records: batch.keep(FoundRecords(batch: self, records: records)))
    }

    /// Copies what another batch has found, for a read of this one that continues there.
    package func keep(_ found: FoundRecords) -> [StoredRecord?] {
        found.records.map { record in
            record.map { record in
                StoredRecord(
                    item: keep(found.batch.found(record.item)), revision: keep(found.batch.found(record.revision)),
                    expiresAt: record.expiresAt)
            }
        }
    }

    // MARK: The reserve

    /// How many bytes a read has found beyond ``Read/maximumBytes``. The batch holds them until its end.
    package func extraBytes(at position: Int) -> Int { state.extras.isEmpty ? 0 : state.extras[position] ?? 0 }

    /// Takes so many bytes of a read's reserve; false if there are not so many.
    func takeExtra(_ bytes: Int, at position: Int) -> Bool {
        let taken = extraBytes(at: position)
        guard let reserve = state.reads[position].reserve, taken + bytes <= reserve.most, reserve.budget.take(bytes)
        else { return false }
        state.extras[position] = taken + bytes
        return true
    }

    private func returnExtras() {
        for (position, bytes) in state.extras { state.reads[position].reserve?.budget.giveBack(bytes) }
        state.extras.removeAll()
    }
}

/// One read; its ids stand in the batch's arena.
package struct Read: Sendable {
    package enum Kind: Sendable {
        /// Items and revisions of these ids.
        case records([ByteArena.Place])
        /// Which of these ids exist.
        case existence([ByteArena.Place])
        /// How many records have an id that begins with this.
        case count(prefix: ByteArena.Place)
    }

    package var collection: BackendCollection
    package var kind: Kind
    /// How many bytes of items and revisions there is room for.
    package var maximumBytes: Int
    /// Where more room may be taken; nil: nowhere.
    package var reserve: Reserve?
    /// What has been found before (``ReadBatch/keep(_:)``), for each id, and is not read again; empty: nothing has. It
    /// takes of ``maximumBytes`` as well.
    package var found: [StoredRecord?] = []

    /// Room that reads share.
    package struct Reserve: Sendable {
        var budget: ByteBudget
        /// How much of it one read may take.
        var most: Int

        package init(_ budget: ByteBudget, atMost most: Int) {
            self.budget = budget
            self.most = most
        }
    }

    package init(
        _ kind: Kind, in collection: BackendCollection, maximumBytes: Int = .max, reserve: Reserve? = nil
    ) {
        self.kind = kind
        self.collection = collection
        self.maximumBytes = maximumBytes
        self.reserve = reserve
    }

    var isCount: Bool {
        if case .count = kind { true } else { false }
    }

    /// How many ids are read.
    var idCount: Int {
        switch kind {
        case .records(let ids), .existence(let ids): ids.count
        case .count: 0
        }
    }
}

extension Read.Kind {
    /// The same in another batch.
    ///
    /// - Parameter move: copies bytes there.
    func moved(_ move: (ByteArena.Place) -> ByteArena.Place) -> Self {
        switch self {
        case .records(let ids): .records(ids.map(move))
        case .existence(let ids): .existence(ids.map(move))
        case .count(let prefix): .count(prefix: move(prefix))
        }
    }
}

/// The outcome of a read.
package enum ReadResult: Sendable {
    /// For each id its record, nil where there is none.
    case records([StoredRecord?])
    case count(Int)
    /// There was room for these records, and for those that are nil there was none, or they do not exist. So many bytes
    /// were missing at least; exactly so many if one record was read.
    case partial([StoredRecord?], lacking: Int)
    case failed(CRUDError)
}

/// A record that was read; its bytes stand in the batch's memory (``ReadBatch/found(_:)``).
package struct StoredRecord: Sendable {
    package var item: ByteArena.Place
    package var revision: ByteArena.Place
    /// Milliseconds since 1970-01-01 UTC; 0: never.
    package var expiresAt: Int64

    /// How much room it takes.
    package var byteCount: Int { item.count + revision.count }
}

/// Records that were read, for each id one, with the batch that has their bytes.
package struct FoundRecords: Sendable {
    package let batch: ReadBatch
    package let records: [StoredRecord?]

    package init(batch: ReadBatch, records: [StoredRecord?]) {
        self.batch = batch
        self.records = records
    }

    /// Without those that have expired since they were read.
    package func unexpired(at now: Int64) -> FoundRecords {
        let records = records.map { record in
            record.flatMap { $0.expiresAt != 0 && $0.expiresAt <= now ? nil : $0 }
        }
        return FoundRecords(batch: batch, records: records)
    }
}
