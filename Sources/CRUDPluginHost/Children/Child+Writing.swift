import CRUDModel
import CRUDPluginABI

/// Writing through a child: a batch is one call, or several where it is very large and need not be whole.
extension Child {
    /// A call that is longer takes no further mutation.
    private static let writeBytes = 4 << 20

    /// Has mutations take effect in order.
    ///
    /// Where only a part of a large batch has failed, that stands in the outcomes of its mutations.
    func write(_ request: crudd_write) throws(PluginFailure) {
        let mutations = UnsafeBufferPointer(start: request.mutations, count: request.count)
        let outcomes = UnsafeMutableBufferPointer(start: request.outcomes, count: request.count)
        let isAtomic = Int(request.flags) & CRUDD_WRITE_ATOMIC != 0
        var start = 0
        repeat {
            var end = start
            do throws(PluginFailure) {
                try call("write", for: .writing) { frame in
                    frame.raw(isAtomic ? #""atomic":true,"mutations":["# : #""mutations":["#)
                    while end < mutations.count, end == start || isAtomic || frame.count < Self.writeBytes {
                        if end > start { frame.raw(",") }
                        frame.mutation(mutations[end])
                        end += 1
                    }
                    frame.raw("]")
                } _: { reader throws(FrameFault) in
                    try reader.outcomes(into: UnsafeMutableBufferPointer(rebasing: outcomes[start..<end]))
                    return true
                }
            } catch {
                // Of a child that is lost already nothing is encoded.
                if end == start { end = mutations.count }
                if start == 0, end == mutations.count { throw error }
                for index in start..<end { outcomes[index].status = crudd_status(error.status) }
            }
            start = end
        } while start < mutations.count
    }
}

extension FrameWriter {
    fileprivate mutating func mutation(_ mutation: crudd_mutation) {
        let collection = ChildTable.collection(mutation.collection)
        raw(#"{"collection":"#)
        raw(collection.name)
        switch Int(mutation.kind) {
        case CRUDD_PUT: raw(#","kind":"put","id":"#)
        case CRUDD_REMOVE: raw(#","kind":"remove","id":"#)
        default: raw(#","kind":"check","id":"#)
        }
        string(mutation.id.buffer)
        switch Int(mutation.precondition) {
        case CRUDD_IF_ABSENT: raw(#","precondition":"absent""#)
        case CRUDD_IF_PRESENT: raw(#","precondition":"present""#)
        case CRUDD_IF_REVISION:
            raw(#","precondition":"revision","expected":"#)
            string(mutation.expected.buffer)
        default: raw(#","precondition":"any""#)
        }
        if Int(mutation.kind) == CRUDD_PUT {
            raw(#","revision":"#)
            string(mutation.revision.buffer)
            item(mutation.item.buffer, collection.itemSpelling)
        }
        raw("}")
    }
}

extension FrameReader {
    /// Reads a result with one outcome for each mutation.
    fileprivate mutating func outcomes(into outcomes: UnsafeMutableBufferPointer<crudd_outcome>) throws(FrameFault) {
        var count = 0
        try object { (reader, key) throws(FrameFault) in
            guard reader.isKey(key, "outcomes") else { return try reader.skip() }
            try reader.array { (reader) throws(FrameFault) in
                guard count < outcomes.count else { throw FrameFault("more outcomes than mutations") }
                outcomes[count] = try reader.outcome()
                count += 1
            }
        }
        guard count == outcomes.count else { throw FrameFault("\(count) outcomes of \(outcomes.count) mutations") }
    }

    private mutating func outcome() throws(FrameFault) -> crudd_outcome {
        var outcome = crudd_outcome()
        var status: Int?
        var revision: FrameText?
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "status") {
                status = try reader.status()
            } else if reader.isKey(key, "replaced") {
                outcome.replaced = try reader.bool() ? 1 : 0
            } else if reader.isKey(key, "revision") {
                revision = try reader.string()
            } else {
                try reader.skip()
            }
        }
        guard let status else { throw FrameFault("an outcome without a status") }
        outcome.status = crudd_status(status)
        if status == CRUDD_MISMATCH {
            let found = revision.map { bytes($0) } ?? UnsafeRawBufferPointer(start: nil, count: 0)
            let capacity = MemoryLayout.size(ofValue: outcome.revision)
            guard !found.isEmpty, found.count <= capacity, found.allSatisfy({ $0 < 0x80 }) else {
                throw FrameFault("a mismatch without the revision that is there")
            }
            withUnsafeMutableBytes(of: &outcome.revision) { $0.copyBytes(from: found) }
            outcome.revision_size = UInt32(found.count)
        }
        forgetTexts()
        return outcome
    }
}
