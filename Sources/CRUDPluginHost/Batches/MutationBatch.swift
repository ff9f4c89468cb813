package import CRUDModel

/// Mutations that one event loop has gathered in one turn for one backend. They take effect in order.
package final class MutationBatch: WorkItem, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    package private(set) var mutations: [Mutation] = []
    package internal(set) var outcomes: [MutationOutcome] = []
    /// Why single mutations cannot be made, by their index: their collection could not be opened.
    var refusals: [Int: CRUDError] = [:]
    package private(set) var arena = ByteArena()

    package override init(deliver: @escaping @Sendable (WorkItem) -> Void) {
        super.init(deliver: deliver)
    }

    override var byteCount: Int { arena.count }

    package var isEmpty: Bool { mutations.isEmpty }

    /// Copies bytes that a mutation is going to refer to.
    package func store(_ bytes: Span<UInt8>) -> ByteArena.Place { arena.append(bytes) }

    package func append(_ mutation: Mutation) { mutations.append(mutation) }
}

/// One change of one record; its texts stand in the batch's arena.
package struct Mutation: Sendable {
    package enum Kind: Sendable {
        case put, remove
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

    package init(
        _ kind: Kind, in collection: BackendCollection, id: ByteArena.Place, precondition: Precondition,
        item: ByteArena.Place = .empty, revision: ByteArena.Place = .empty
    ) {
        self.kind = kind
        self.collection = collection
        self.id = id
        self.precondition = precondition
        self.item = item
        self.revision = revision
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

/// What a mutation came to.
package enum MutationOutcome: Sendable {
    /// It took effect; whether there was a record before.
    case applied(replaced: Bool)
    case exists
    case notFound
    /// The revision that is there.
    case mismatch(current: [UInt8])
    /// The plugin's status; ``Backend/error(status:)`` tells what it means for a peer.
    case failed(status: Int)
    /// Its collection could not be opened or created; the plugin was not asked.
    case refused(CRUDError)
}
