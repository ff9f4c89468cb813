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
    var keys: [[UInt8]] = []

    static func put(
        _ id: String, _ item: String, _ revision: String = "r", _ precondition: Int = CRUDD_IF_ANY,
        expected: String = "", expiresAt: Int64 = 0, sequence: UInt64 = 0, keys: [String] = []
    ) -> Change {
        Change(
            id: id, item: Array(item.utf8), revision: revision, precondition: precondition, expected: expected,
            expiresAt: expiresAt, sequence: sequence, keys: keys.map { Array($0.utf8) })
    }

    static func remove(
        _ id: String, _ precondition: Int = CRUDD_IF_ANY, expected: String = "", sequence: UInt64 = 0
    ) -> Change {
        Change(kind: CRUDD_REMOVE, id: id, precondition: precondition, expected: expected, sequence: sequence)
    }

    static func setKeys(_ id: String, _ keys: [String], ifRevision expected: String = "r") -> Change {
        Change(
            kind: CRUDD_SET_KEYS, id: id, precondition: CRUDD_IF_REVISION, expected: expected,
            keys: keys.map { Array($0.utf8) })
    }

    /// - Parameter recordBytes: the size of a record as the host knows it, a multiple of 8.
    func mutation(
        of collection: OpaquePointer, sequence next: UInt64, in arena: Arena,
        recordBytes: Int = MemoryLayout<crudd_record>.size
    ) -> crudd_mutation {
        var mutation = crudd_mutation()
        mutation.struct_size = UInt32(MemoryLayout<crudd_mutation>.size)
        mutation.kind = UInt32(kind)
        mutation.precondition = UInt32(precondition)
        mutation.collection = collection
        mutation.expected = arena.bytes(expected)
        var record = crudd_record()
        record.struct_size = UInt32(recordBytes)
        record.id = arena.bytes(id)
        record.item = arena.bytes(item)
        record.revision = arena.bytes(revision)
        record.expires_at = expiresAt
        record.sequence = sequence == 0 ? next : sequence
        record.keys = UnsafePointer(arena.array(keys.map { arena.bytes($0) }))
        record.key_count = keys.count
        let memory = UnsafeMutableRawPointer(arena.array([UInt64](repeating: .max, count: recordBytes / 8)))
        withUnsafeBytes(of: record) { record in
            memory.copyMemory(from: record.baseAddress!, byteCount: min(recordBytes, record.count))
        }
        mutation.record = UnsafePointer(memory.assumingMemoryBound(to: crudd_record.self))
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
