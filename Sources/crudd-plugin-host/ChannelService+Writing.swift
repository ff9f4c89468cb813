import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost

/// The method that writes.
extension ChannelService {
    func write(_ request: inout FrameReader) throws(PluginFailure) {
        var read: [MutationInFrame] = []
        var keys: [crudd_bytes] = []
        var flags = 0
        var now: Int64 = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "mutations":
                try request.array { (request) throws(ProtocolViolation) in
                    read.append(try request.mutation(keys: &keys))
                }
            case "atomic": flags = try request.bool() ? CRUDD_WRITE_ATOMIC : 0
            case "now": now = Int64(try request.count())
            default: try request.skip()
            }
        }
        let backend = try backend()
        var mutations: [crudd_mutation] = []
        mutations.reserveCapacity(read.count)
        var known: (number: Int, handle: OpaquePointer?)?
        for mutation in read {
            if known?.number != mutation.collection {
                known = (mutation.collection, try collection(mutation.collection).handle)
            }
            mutations.append(mutation.mutation)
            mutations[mutations.count - 1].collection = known?.handle
        }
        var records = read.map(\.record)
        let outcomes = keys.withUnsafeBufferPointer { keys in
            for (position, mutation) in read.enumerated() where !mutation.keys.isEmpty {
                records[position].keys = keys.baseAddress.map { $0 + mutation.keys.lowerBound }
                records[position].key_count = mutation.keys.count
            }
            return records.withUnsafeBufferPointer { records in
                for position in records.indices {
                    mutations[position].record = records.baseAddress.map { $0 + position }
                }
                return apply(mutations, to: backend, flags: flags, now: now)
            }
        }
        try failure.check(outcomes.status)
        reply.raw(#""outcomes":"#)
        reply.array(outcomes.all) { $0.outcome($1) }
    }

    private func apply(
        _ mutations: [crudd_mutation], to backend: OpaquePointer, flags: Int, now: Int64
    ) -> (status: crudd_status, all: [crudd_outcome]) {
        var outcomes = [crudd_outcome](repeating: .sized(), count: mutations.count)
        let status = mutations.withUnsafeBufferPointer { mutations in
            outcomes.withUnsafeMutableBufferPointer { outcomes in
                var call = crudd_write.sized()
                call.flags = UInt32(flags)
                call.mutations = mutations.baseAddress
                call.mutation_size = MemoryLayout<crudd_mutation>.stride
                call.outcomes = outcomes.baseAddress
                call.outcome_size = MemoryLayout<crudd_outcome>.stride
                call.count = mutations.count
                return storage.clock.write {
                    table.pointee.write(backend, context.begin(now: now), &call, failure.pointer)
                }
            }
        }
        return (status, outcomes)
    }
}
