import CRUDPluginABI
import CRUDPluginHost

/// Records that the plugin has removed by itself, for they had expired.
final class Removals {
    private let collection: OpaquePointer
    private var arena = ByteArena()
    private var removed: [(id: ByteArena.Place, sequence: UInt64)] = []

    init(from collection: OpaquePointer) {
        self.collection = collection
    }

    var count: Int { removed.count }

    func note(_ id: UnsafeRawBufferPointer, sequence: UInt64) {
        // The buffer is valid during this call.
        removed.append((arena.append(unsafe id.bindMemory(to: UInt8.self).span), sequence))
    }

    /// Shows them as mutations of a commit that have all taken effect.
    func withMutations(
        _ body: (UnsafeBufferPointer<crudd_mutation>, UnsafeBufferPointer<crudd_outcome>) -> Void
    ) {
        let records = removed.map { removed in
            var record = crudd_record.sized()
            record.id = crudd_bytes(arena.bytes(removed.id))
            record.sequence = removed.sequence
            return record
        }
        let outcomes = [crudd_outcome](repeating: .sized(), count: removed.count)
        records.withUnsafeBufferPointer { records in
            let mutations = records.indices.map { index in
                var mutation = crudd_mutation.sized()
                mutation.kind = UInt32(CRUDD_REMOVE)
                mutation.collection = collection
                mutation.record = records.baseAddress.map { $0 + index }
                return mutation
            }
            mutations.withUnsafeBufferPointer { mutations in
                outcomes.withUnsafeBufferPointer { body(mutations, $0) }
            }
        }
    }
}
