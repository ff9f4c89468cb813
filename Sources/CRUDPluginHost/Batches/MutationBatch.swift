package import CRUDModel

/// Mutations for one backend, which take effect in order: those that one event loop has gathered in one turn, or, all of
/// them or none, those of one request.
package final class MutationBatch: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package private(set) var mutations: [Mutation] = []
    /// One for each mutation. Where all take effect or none does: up to the first that does not.
    package internal(set) var outcomes: [MutationOutcome] = []
    /// Whether all take effect or none does.
    package let isAtomic: Bool
    /// Why single mutations cannot be made, by their index: their collection could not be opened.
    var refusals: [Int: CRUDError] = [:]
    package private(set) var arena = ByteArena()
    /// What transformations have made to be shown, by the index of their mutation.
    private var shown: [Int: ByteArena.Place] = [:]

    package init(isAtomic: Bool = false, deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.isAtomic = isAtomic
        super.init(deliver: deliver)
    }

    override var byteCount: Int { arena.count }

    package var isEmpty: Bool { mutations.isEmpty }

    /// Copies bytes that a mutation is going to refer to.
    package func store(_ bytes: Span<UInt8>) -> ByteArena.Place { arena.append(bytes) }

    package func append(_ mutation: Mutation) { mutations.append(mutation) }

    /// The item that a transformation has made, as it is to be shown.
    package func shownItem(at index: Int) -> UnsafeRawBufferPointer { arena.bytes(shown[index] ?? .empty) }

    /// Keeps what a transformation has made; answers where the bytes to store stand. No address of the arena may be in
    /// use.
    func keep(_ item: TransformedItem, at index: Int) -> ByteArena.Place {
        let stored = arena.append(item.stored.span)
        shown[index] = item.shown.map { arena.append($0.span) } ?? stored
        return stored
    }
}

/// One change of one record; its texts stand in the batch's arena.
package struct Mutation: Sendable {
    package enum Kind: Sendable {
        case put, remove
        /// Changes nothing: only the precondition counts.
        case check
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
    /// Makes the item of a put from the current one; the precondition `any` then makes a record where there is none.
    package var transformation: (any ItemTransformation)?

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

    /// Whether it makes a record where there was none.
    var canCreate: Bool {
        guard kind == .put else { return false }
        return switch precondition {
        case .any, .absent: true
        case .present, .revision: false
        }
    }
}

/// What a mutation came to; a check that holds is applied.
package enum MutationOutcome: Sendable {
    /// It took effect; whether there was a record before.
    case applied(replaced: Bool)
    case exists
    case notFound
    /// The revision that is there.
    case mismatch(current: [UInt8])
    /// The plugin's status; ``Backend/error(status:)`` tells what it means for a peer.
    case failed(status: Int)
    /// The plugin was not asked, or could not tell: its collection could not be opened or created, its item not made.
    case refused(CRUDError)
}
