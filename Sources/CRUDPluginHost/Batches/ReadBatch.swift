package import CRUDModel

/// Reads that one event loop has gathered in one turn for one backend that is not read on the loop itself.
package final class ReadBatch: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    // None is checked for exclusive access at run time, which a profile of reads shows: one thread at a time uses them, and
    // nothing that is called during an access comes back to them.

    @exclusivity(unchecked) package private(set) var reads: [Read] = []
    @exclusivity(unchecked) package internal(set) var results: [ReadResult] = []
    /// Why single reads cannot be made, by their index: their collection could not be opened.
    @exclusivity(unchecked) var refusals: [Int: CRUDError] = [:]
    /// The ids that are asked for.
    @exclusivity(unchecked) package private(set) var arena = ByteArena()
    /// The items and revisions that were found.
    @exclusivity(unchecked) package private(set) var found = ByteArena()

    package override init(deliver: @escaping @Sendable (WorkItem) -> Void) {
        super.init(deliver: deliver)
    }

    override var byteCount: Int { arena.count }

    override var isReadable: Bool { reads.allSatisfy(\.collection.isOpen) }

    package var isEmpty: Bool { reads.isEmpty }

    /// Copies bytes that a read is going to refer to.
    package func store(_ bytes: Span<UInt8>) -> ByteArena.Place { arena.append(bytes) }

    package func append(_ read: Read) { reads.append(read) }

    /// Whether it only looks ids up.
    var isLookup: Bool { !reads.contains { $0.isCount } }

    /// Makes a place for the result of each read, and sets those that are refused.
    func prepareResults() {
        results = Array(repeating: .records([]), count: reads.count)
        for (index, refusal) in refusals { results[index] = .failed(refusal) }
    }

    func keep(_ bytes: UnsafeRawBufferPointer) -> ByteArena.Place { found.append(bytes) }
}

/// One read; its ids stand in the batch's arena.
package struct Read: Sendable {
    package enum Kind: Sendable {
        /// Items and revisions of these ids.
        case records([ByteArena.Place])
        /// Which of these ids are there.
        case existence([ByteArena.Place])
        /// How many records the collection has, whose ids begin as `prefix` says.
        case count
    }

    package var collection: BackendCollection
    package var kind: Kind
    /// How many bytes of items and revisions are worth finding.
    package var maximumBytes: Int
    /// How the ids begin that are counted.
    package var prefix = ByteArena.Place.empty

    package init(_ kind: Kind, in collection: BackendCollection, maximumBytes: Int = .max) {
        self.kind = kind
        self.collection = collection
        self.maximumBytes = maximumBytes
    }

    var isCount: Bool {
        if case .count = kind { true } else { false }
    }
}

/// What a read came to.
package enum ReadResult: Sendable {
    /// For each id its record, nil where there is none.
    case records([FoundRecord?])
    case count(Int)
    /// More was found than ``Read/maximumBytes``.
    case tooLong
    case failed(CRUDError)
}

/// A record that was read; its bytes stand in the batch's `found` arena.
package struct FoundRecord: Sendable {
    package var item: ByteArena.Place
    package var revision: ByteArena.Place
}
