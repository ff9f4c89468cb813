import CRUDModel
import CRUDPluginHost

@testable import CRUDStorage

/// One change of one record, written out.
struct Change {
    var kind = Mutation.Kind.put
    var id: String
    var item = ""
    var revision = "r"
    var precondition = Precondition.any
    /// The record's index keys; nil: what its collection makes of the item.
    var keys: [[UInt8]]?

    enum Precondition {
        case any, absent, present
        case revision(String)
    }

    static func put(
        _ id: String, _ item: String = "1", _ revision: String = "r", if precondition: Precondition = .any
    ) -> Change {
        Change(id: id, item: item, revision: revision, precondition: precondition)
    }

    static func remove(_ id: String, if precondition: Precondition = .any) -> Change {
        Change(kind: .remove, id: id, precondition: precondition)
    }

    static func check(_ id: String, if precondition: Precondition) -> Change {
        Change(kind: .check, id: id, precondition: precondition)
    }

    static func setKeys(_ id: String, _ keys: [[UInt8]], revision: String = "r") -> Change {
        Change(kind: .setKeys, id: id, precondition: .revision(revision), keys: keys)
    }
}

extension MutationBatch {
    func append(
        _ change: Change, in collection: BackendCollection, transformation: (any ItemTransformation)? = nil
    ) {
        append(mutation(change, in: collection, transformation: transformation))
    }

    /// A mutation whose bytes stand in this batch.
    func mutation(
        _ change: Change, in collection: BackendCollection, transformation: (any ItemTransformation)? = nil
    ) -> Mutation {
        func place(_ text: String) -> ByteArena.Place { store(Array(text.utf8).span) }
        let precondition: Mutation.Precondition =
            switch change.precondition {
            case .any: .any
            case .absent: .absent
            case .present: .present
            case .revision(let revision): .revision(place(revision))
            }
        var mutation = Mutation(
            change.kind, in: collection, id: place(change.id), precondition: precondition, item: place(change.item),
            revision: place(change.revision), transformation: transformation)
        if let keys = change.keys {
            mutation.keys = store(IndexKeys(keys, layout: collection.layoutNumber))
        } else if change.kind == .put, !collection.indexPaths.isEmpty {
            mutation.keys = store(collection.keys(of: Array(change.item.utf8).span))
        }
        return mutation
    }

    /// The outcome of each mutation, in words.
    var outcomeTexts: [String] { outcomes.map(\.text) }
}

extension MutationOutcome {
    var text: String {
        switch self {
        case .applied(let replaced): replaced ? "replaced" : "applied"
        case .exists: "exists"
        case .notFound: "not found"
        case .mismatch(let current): "mismatch \(String(decoding: current, as: UTF8.self))"
        case .failed(let status): "failed \(status)"
        case .refused(let error): "refused \(error.code.name)"
        }
    }
}
