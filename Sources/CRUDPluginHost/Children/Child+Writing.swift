import CRUDPluginABI

/// Writing through a child: a batch is one call, or several where it is very large and not atomic.
extension Child {
    /// A call that is longer takes no further mutation.
    private static let writeBytes = 4 << 20

    /// Has mutations take effect in order.
    ///
    /// Where only a part of a large batch has failed, that stands in the outcomes of its mutations.
    func write(_ request: crudd_write, _ call: crudd_call) throws(PluginFailure) {
        let batch = MutationArrays(request)
        let isAtomic = Int(request.flags) & CRUDD_WRITE_ATOMIC != 0
        var start = 0
        while start < batch.count {
            var end = start
            do throws(PluginFailure) {
                try self.call("write", for: .writing, interrupt: ChildCall.Interrupt(call)) { frame in
                    frame.raw(isAtomic ? #""atomic":true,"now":"# : #""now":"#)
                    frame.integer(call.now)
                    frame.raw(#","mutations":["#)
                    while end < batch.count, end == start || isAtomic || frame.count < Self.writeBytes {
                        if end > start { frame.raw(",") }
                        let mutation = batch.mutation(end)
                        frame.mutation(mutation, collection: ChildTable.number(of: mutation.collection))
                        end += 1
                    }
                    frame.raw("]")
                } _: { reader throws(ProtocolViolation) in
                    try reader.outcomes(of: start..<end, into: batch)
                    return true
                }
            } catch {
                // With a child that is lost already nothing is encoded.
                if end == start { end = batch.count }
                if start == 0, end == batch.count { throw error }
                for index in start..<end { batch.setStatus(error.status, at: index) }
            }
            start = end
        }
    }
}

/// The two arrays of a `crudd_write`, whose elements are as large as the caller says.
private struct MutationArrays {
    let count: Int
    private let mutations: UnsafeRawPointer
    private let mutationSize: Int
    private let outcomes: UnsafeMutableRawPointer
    private let outcomeSize: Int

    init(_ request: crudd_write) {
        count = request.count
        mutations = UnsafeRawPointer(request.mutations)
        mutationSize = request.mutation_size
        outcomes = UnsafeMutableRawPointer(request.outcomes)
        outcomeSize = request.outcome_size
    }

    func mutation(_ index: Int) -> crudd_mutation {
        .read((mutations + index * mutationSize).assumingMemoryBound(to: crudd_mutation.self))
    }

    /// Sets an outcome, as much of it as the caller knows.
    func set(_ outcome: crudd_outcome, at index: Int) {
        var outcome = outcome
        let place = outcomes + index * outcomeSize
        // What is the caller's own size of the struct stays.
        outcome.struct_size = place.load(as: UInt32.self)
        withUnsafeBytes(of: &outcome) { bytes in
            place.copyMemory(from: bytes.baseAddress!, byteCount: min(outcomeSize, bytes.count))
        }
    }

    func setStatus(_ status: Int, at index: Int) {
        var outcome = crudd_outcome()
        outcome.status = crudd_status(status)
        set(outcome, at: index)
    }
}

extension FrameReader {
    /// Reads a result with one outcome for each mutation.
    fileprivate mutating func outcomes(
        of mutations: Range<Int>, into batch: MutationArrays
    ) throws(ProtocolViolation) {
        var index = mutations.lowerBound
        try object(with: "outcomes") { (reader) throws(ProtocolViolation) in
            try reader.array { (reader) throws(ProtocolViolation) in
                guard index < mutations.upperBound else { throw ProtocolViolation("more outcomes than mutations") }
                batch.set(try reader.outcome(), at: index)
                index += 1
            }
        }
        guard index == mutations.upperBound else {
            throw ProtocolViolation("\(index - mutations.lowerBound) outcomes of \(mutations.count) mutations")
        }
    }
}
