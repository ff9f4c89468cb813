import CRUDPluginABI

/// One mutation of a batch.
struct Change {
    var kind = CRUDD_PUT
    var id: String
    var item: [UInt8] = []
    var revision = ""
    var precondition = CRUDD_IF_ANY
    var expected = ""
    var expiresAt: Int64 = 0
    /// 0: the next one.
    var sequence: UInt64 = 0
    /// Empty: none.
    var keys: [String] = []

    static func put(
        _ id: String, _ item: String, _ revision: String = "r", _ precondition: Int = CRUDD_IF_ANY,
        expected: String = "", expiresAt: Int64 = 0, sequence: UInt64 = 0, keys: [String] = []
    ) -> Change {
        Change(
            id: id, item: Array(item.utf8), revision: revision, precondition: precondition, expected: expected,
            expiresAt: expiresAt, sequence: sequence, keys: keys)
    }

    static func remove(_ id: String, _ precondition: Int = CRUDD_IF_ANY, expected: String = "") -> Change {
        Change(kind: CRUDD_REMOVE, id: id, precondition: precondition, expected: expected)
    }

    static func setKeys(_ id: String, _ keys: [String], ifRevision expected: String = "r") -> Change {
        Change(kind: CRUDD_SET_KEYS, id: id, precondition: CRUDD_IF_REVISION, expected: expected, keys: keys)
    }

    func mutation(of collection: OpaquePointer, sequence next: UInt64, in arena: Arena) -> crudd_mutation {
        var mutation = crudd_mutation()
        mutation.struct_size = UInt32(MemoryLayout<crudd_mutation>.size)
        mutation.kind = UInt32(kind)
        mutation.precondition = UInt32(precondition)
        mutation.collection = collection
        mutation.expected = arena.bytes(expected)
        mutation.record.struct_size = UInt32(MemoryLayout<crudd_record>.size)
        mutation.record.id = arena.bytes(id)
        mutation.record.item = arena.bytes(item)
        mutation.record.revision = arena.bytes(revision)
        mutation.record.expires_at = expiresAt
        mutation.record.sequence = sequence == 0 ? next : sequence
        mutation.record.keys = UnsafePointer(arena.array(keys.map { arena.bytes($0) }))
        mutation.record.key_count = keys.count
        return mutation
    }
}

/// The outcome of one mutation.
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
    static let keyed = Outcome(CRUDD_OK)
    static let exists = Outcome(CRUDD_EXISTS)
    static let notFound = Outcome(CRUDD_NOT_FOUND)
    static let unsupported = Outcome(CRUDD_UNSUPPORTED)

    static func mismatch(_ revision: String) -> Outcome { Outcome(CRUDD_MISMATCH, revision: revision) }

    var description: String { "\(status)\(replaced ? " replaced" : "")\(revision.isEmpty ? "" : " \(revision)")" }
}
