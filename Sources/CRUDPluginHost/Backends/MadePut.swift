import CRUDModel
import CRUDPluginABI

/// A put as a transformation has made it: what to store, and on what condition.
struct MadePut {
    var item: ByteArena.Place
    var precondition: Mutation.Precondition
}

/// What has become of a mutation that depends on the current record.
enum Preparation {
    case put(MadePut)
    /// The plugin need not be asked.
    case settled(MutationOutcome)
}

extension BackendWriter {
    /// Reads the record that a mutation depends on and does what can be done with it.
    func prepare(_ mutation: Mutation, at index: Int, in batch: MutationBatch) throws(CRUDError) -> Preparation {
        let transformation = mutation.transformation
        let record = try lookup().record(of: mutation, in: batch, withItem: transformation != nil)
        if let refusal = mutation.refusal(current: record?.revision, in: batch) {
            return .settled(refusal)
        }
        guard let transformation else { return .settled(.applied(replaced: false)) }
        return .put(try batch.make(transformation, of: record, at: index))
    }
}

extension MutationBatch {
    /// Makes an item from the current one, and keeps it.
    ///
    /// - Parameter record: the current one; nil where there is none.
    func make(
        _ transformation: any ItemTransformation, of record: RecordLookup.Record?, at index: Int
    ) throws(CRUDError) -> MadePut {
        let place = keep(try transformation.transform(record?.item), at: index)
        return MadePut(item: place, precondition: record.map { .revision(store($0.revision.span)) } ?? .absent)
    }
}

extension crudd_mutation {
    /// The mutation as the plugin sees it; its addresses hold until something is added to its batch.
    init(_ mutation: Mutation, in batch: MutationBatch, made: MadePut? = nil) {
        self.init()
        collection = mutation.collection.handle
        kind =
            switch mutation.kind {
            case .put: UInt32(CRUDD_PUT)
            case .remove: UInt32(CRUDD_REMOVE)
            case .check: UInt32(CRUDD_CHECK)
            }
        id = crudd_bytes(batch.arena.bytes(mutation.id))
        item = crudd_bytes(batch.arena.bytes(made?.item ?? mutation.item))
        revision = crudd_bytes(batch.arena.bytes(mutation.revision))
        switch made?.precondition ?? mutation.precondition {
        case .any: precondition = UInt32(CRUDD_IF_ANY)
        case .absent: precondition = UInt32(CRUDD_IF_ABSENT)
        case .present: precondition = UInt32(CRUDD_IF_PRESENT)
        case .revision(let expected):
            precondition = UInt32(CRUDD_IF_REVISION)
            self.expected = crudd_bytes(batch.arena.bytes(expected))
        }
    }
}

extension MutationOutcome {
    init(_ outcome: crudd_outcome) {
        switch Int(outcome.status) {
        case CRUDD_OK: self = .applied(replaced: outcome.replaced != 0)
        case CRUDD_EXISTS: self = .exists
        case CRUDD_NOT_FOUND: self = .notFound
        case CRUDD_MISMATCH:
            let size = min(Int(outcome.revision_size), MemoryLayout.size(ofValue: outcome.revision))
            self = .mismatch(current: withUnsafeBytes(of: outcome.revision) { Array($0.prefix(size)) })
        default: self = .failed(status: Int(outcome.status))
        }
    }
}
