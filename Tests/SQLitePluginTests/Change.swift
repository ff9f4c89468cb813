import CRUDPluginABI

/// One mutation of a batch.
struct Change {
    var kind = CRUDD_PUT
    var id: String
    var item: [UInt8] = []
    var revision = ""
    var precondition = CRUDD_IF_ANY
    var expected = ""

    static func put(
        _ id: String, _ item: String, _ revision: String = "r", _ precondition: Int = CRUDD_IF_ANY,
        expected: String = ""
    ) -> Change {
        Change(
            id: id, item: Array(item.utf8), revision: revision, precondition: precondition, expected: expected)
    }

    static func remove(_ id: String, _ precondition: Int = CRUDD_IF_ANY, expected: String = "") -> Change {
        Change(kind: CRUDD_REMOVE, id: id, precondition: precondition, expected: expected)
    }

    func mutation(of collection: OpaquePointer, in arena: Arena) -> crudd_mutation {
        crudd_mutation(
            collection: collection, kind: UInt32(kind), precondition: UInt32(precondition), id: arena.bytes(id),
            item: arena.bytes(item), revision: arena.bytes(revision), expected: arena.bytes(expected))
    }
}

/// What one mutation came to.
struct Outcome: Equatable, CustomStringConvertible {
    var status: Int
    var replaced = false
    var revision = ""

    init(_ status: Int, replaced: Bool = false, revision: String = "") {
        self.status = status
        self.replaced = replaced
        self.revision = revision
    }

    init(_ outcome: crudd_outcome) {
        status = Int(outcome.status)
        replaced = outcome.replaced == 1
        revision = withUnsafeBytes(of: outcome.revision) {
            String(decoding: $0.prefix(Int(outcome.revision_size)), as: UTF8.self)
        }
    }

    static let created = Outcome(CRUDD_OK)
    static let replaced = Outcome(CRUDD_OK, replaced: true)
    static let removed = Outcome(CRUDD_OK)
    static let exists = Outcome(CRUDD_EXISTS)
    static let notFound = Outcome(CRUDD_NOT_FOUND)

    static func mismatch(_ revision: String) -> Outcome { Outcome(CRUDD_MISMATCH, revision: revision) }

    var description: String { "\(status)\(replaced ? " replaced" : "")\(revision.isEmpty ? "" : " \(revision)")" }
}
