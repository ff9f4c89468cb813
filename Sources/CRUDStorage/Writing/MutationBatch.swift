package import CRUDModel
package import CRUDPluginHost
import Synchronization

/// Mutations for one backend, which take effect in order: those that one event loop has gathered in one iteration, or
/// those of one atomic request.
package final class MutationBatch: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time. So what every mutation touches is not checked for exclusive
    // access at run time either.

    @exclusivity(unchecked) package private(set) var mutations: [Mutation] = []
    /// One for each mutation. Of an atomic batch: up to the first that fails.
    @exclusivity(unchecked) package internal(set) var outcomes: [MutationOutcome] = []
    /// Whether all mutations take effect or none does.
    package let isAtomic: Bool
    /// The session whose mutations these are; nil: those of several, none of which has a transformation, and none of
    /// their sessions has a batch of its own in flight.
    package let session: Int?
    /// The positions of the mutations that ``LongWrite`` executes, for their items take long to make, or such ones are
    /// before them.
    var deferred: [Int] = []
    /// The first of those whose item is known to take long.
    var longPosition: Int?
    private let abandoned = Atomic(false)
    /// Why single mutations cannot be made, by their position: their collection could not be opened.
    var refusals: [Int: CRUDError] = [:]
    @exclusivity(unchecked) package private(set) var arena = ByteArena()
    /// The index keys of all mutations, one after the other.
    private var keys: [ByteArena.Place] = []
    /// The items that transformations have made, as clients see them, by the position of their mutation.
    private var shown: [Int: ByteArena.Place] = [:]

    package init(
        isAtomic: Bool = false, of session: Int? = nil, deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.isAtomic = isAtomic
        self.session = session
        super.init(deliver: deliver)
    }

    package override var byteCount: Int { arena.count }
    override var isWrite: Bool { true }
    override var owner: Int? { session }
    override func waitersHaveLeft() { abandoned.store(true, ordering: .relaxed) }

    override func naming(_ error: CRUDError, _ range: Range<Int>) -> CRUDError {
        guard range.count == 1, let mutation = mutations[range].first else { return error }
        return error.about(arena.bytes(mutation.id), in: mutation.collection.name)
    }

    /// Whether no request waits for it any more.
    var isAbandoned: Bool { abandoned.load(ordering: .relaxed) }

    /// Copies bytes that a mutation is going to refer to.
    package func store(_ bytes: Span<UInt8>) -> ByteArena.Place { arena.append(bytes) }

    /// Copies the index keys of one record.
    func store(_ keys: IndexKeys) -> StoredKeys {
        let start = self.keys.count
        for key in keys.keys { self.keys.append(arena.append(key.span)) }
        return StoredKeys(range: start..<self.keys.count, layout: keys.layout)
    }

    /// Removes what has been stored since ``byteCount`` was `count`. Nothing may refer to it.
    func removeBytes(from count: Int) { arena.remove(from: count) }

    func keys(_ range: Range<Int>) -> ArraySlice<ByteArena.Place> { keys[range] }

    func append(_ mutation: Mutation) { mutations.append(mutation) }

    // MARK: Transformed items

    /// The item that a transformation has made, as clients see it.
    package func shownItem(at position: Int) -> UnsafeRawBufferPointer { arena.bytes(shown[position] ?? .empty) }

    /// Keeps what a transformation has made. No address of the arena may be in use.
    ///
    /// - Returns: where the bytes to store stand, and the record's keys.
    func keep(_ item: TransformedItem, at position: Int) -> (item: ByteArena.Place, keys: StoredKeys) {
        let stored = arena.append(item.stored.span)
        shown[position] = item.shown.map { arena.append($0.span) } ?? stored
        return (stored, store(item.keys))
    }
}

/// One change of one record; its bytes stand in the batch's arena.
package struct Mutation: Sendable {
    package enum Kind: Sendable {
        case put, remove
        /// Changes nothing: only the precondition counts.
        case check
        /// Stores the index keys and nothing else.
        case setKeys
    }

    package enum Precondition: Sendable {
        case any, absent, present
        case revision(ByteArena.Place)
    }

    package var collection: BackendCollection
    package var kind: Kind
    package var precondition: Precondition
    package var id: ByteArena.Place
    package var item: ByteArena.Place
    package var revision: ByteArena.Place
    /// Milliseconds since 1970-01-01 UTC; 0: never.
    package var expiresAt: Int64 = 0
    /// Of a copy: the sequence number of its original, 0 for its removal; nil: the mutation gets the next one.
    package var sequence: UInt64?
    /// The record's index keys; see ``Collection/storeKeys(of:in:)``.
    package var keys = StoredKeys()
    /// Makes the item of a put from the current one; the precondition `any` then creates a record where there is none.
    package var transformation: (any ItemTransformation)?
    /// Who owns the collection if the mutation creates it; nil: no user does.
    package var creator: CollectionCreator?

    package init(
        _ kind: Kind, in collection: BackendCollection, id: ByteArena.Place, precondition: Precondition,
        item: ByteArena.Place = .empty, revision: ByteArena.Place = .empty,
        transformation: (any ItemTransformation)? = nil
    ) {
        self.kind = kind
        self.collection = collection
        self.id = id
        self.precondition = precondition
        self.item = item
        self.revision = revision
        self.transformation = transformation
    }

    /// Whether it changes nothing and demands that there is no record.
    var isCheckForAbsence: Bool {
        if kind == .check, case .absent = precondition { true } else { false }
    }

    /// Whether it creates a record where there was none.
    package var canCreate: Bool {
        guard kind == .put else { return false }
        return switch precondition {
        case .any, .absent: true
        case .present, .revision: false
        }
    }
}

/// The index keys of a record that stand in a batch.
package struct StoredKeys: Sendable {
    /// Where they stand among those of the batch.
    var range = 0..<0
    /// The layout by which they were made, see ``BackendCollection/layoutNumber``; 0: none were.
    var layout: UInt32 = 0
}

/// The outcome of a mutation; a check that holds is applied.
package enum MutationOutcome: Sendable {
    /// It took effect; whether there was a record before.
    case applied(replaced: Bool)
    case exists
    case notFound
    /// The revision that is there.
    case mismatch(current: [UInt8])
    /// The plugin's status; ``Backend/error(status:)`` tells what it means for a client.
    case failed(status: Int)
    /// The plugin was not asked, or could not tell: its collection could not be opened or created, its item not made.
    indirect case refused(CRUDError)
}
