import CRUDPluginABI
import CRUDPluginHost

/// A mutation on its way to the plugin.
struct PluginMutation {
    let batch: MutationBatch
    /// Its position in the batch.
    let position: Int
    /// What a transformation has made of it.
    var resolved: ResolvedPut?

    var mutation: Mutation { batch.mutations[position] }

    /// How many index keys the plugin gets: one for each index of the collection, as it has been opened.
    var keyCount: Int {
        switch mutation.kind {
        case .put, .setKeys: mutation.collection.indexes?.paths.count ?? 0
        case .remove, .check: 0
        }
    }

    /// The mutation as the plugin sees it; its addresses hold until something is added to its batch.
    ///
    /// - Parameters:
    ///   - record: becomes the record of the mutation.
    ///   - keys: has room for ``keyCount`` keys.
    func raw(
        sequence: UInt64, record: UnsafeMutablePointer<crudd_record>, keys: UnsafeMutablePointer<crudd_bytes>?
    ) -> crudd_mutation {
        var raw = crudd_mutation.sized()
        raw.collection = mutation.collection.handle
        raw.record = UnsafePointer(record)
        record.pointee = .sized()
        record.pointee.id = crudd_bytes(batch.arena.bytes(mutation.id))
        record.pointee.item = crudd_bytes(batch.arena.bytes(resolved?.item ?? mutation.item))
        record.pointee.revision = crudd_bytes(batch.arena.bytes(mutation.revision))
        record.pointee.expires_at = resolved?.expiresAt ?? mutation.expiresAt
        record.pointee.sequence = sequence
        raw.set(kind: mutation.kind)
        raw.set(resolved?.precondition ?? mutation.precondition, in: batch)
        let count = keyCount
        if let keys, count > 0 {
            let made = resolved?.keys ?? mutation.keys
            // Keys of another layout than the one in force would be wrong. One that is missing stays empty: the record
            // is unkeyed.
            if made.layout == mutation.collection.toldLayoutNumber {
                for (index, key) in batch.keys(made.range).prefix(count).enumerated() {
                    keys[index] = crudd_bytes(batch.arena.bytes(key))
                }
            }
            record.pointee.keys = UnsafePointer(keys)
            record.pointee.key_count = count
        }
        return raw
    }
}

extension MutationBatch {
    /// The mutations as the plugin is asked for them.
    var pluginMutations: [PluginMutation] { mutations.indices.map { PluginMutation(batch: self, position: $0) } }
}

extension crudd_mutation {
    fileprivate mutating func set(kind: Mutation.Kind) {
        self.kind =
            switch kind {
            case .put: UInt32(CRUDD_PUT)
            case .remove: UInt32(CRUDD_REMOVE)
            case .check: UInt32(CRUDD_CHECK)
            case .setKeys: UInt32(CRUDD_SET_KEYS)
            }
    }

    fileprivate mutating func set(_ precondition: Mutation.Precondition, in batch: MutationBatch) {
        switch precondition {
        case .any: self.precondition = UInt32(CRUDD_IF_ANY)
        case .absent: self.precondition = UInt32(CRUDD_IF_ABSENT)
        case .present: self.precondition = UInt32(CRUDD_IF_PRESENT)
        case .revision(let revision):
            self.precondition = UInt32(CRUDD_IF_REVISION)
            expected = crudd_bytes(batch.arena.bytes(revision))
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
