import CRUDPluginABI
import CRUDPluginHost

/// The method that writes.
extension ChannelService {
    func write(_ request: inout FrameReader) throws(Refusal) {
        var mutations: [MutationInRequest] = []
        var flags = 0
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "mutations") {
                try request.array { (request) throws(FrameFault) in mutations.append(try request.mutation()) }
            } else if request.isKey(key, "atomic") {
                flags = try request.bool() ? CRUDD_WRITE_ATOMIC : 0
            } else {
                try request.skip()
            }
        }
        let backend = try backend()
        // All texts are decoded: from here on they stay where they are.
        var asked: [crudd_mutation] = []
        asked.reserveCapacity(mutations.count)
        for mutation in mutations {
            asked.append(mutation.mutation(request, in: try collection(mutation.collection)))
        }
        var outcomes = [crudd_outcome](repeating: crudd_outcome(), count: asked.count)
        try check { failure in
            asked.withUnsafeBufferPointer { asked in
                outcomes.withUnsafeMutableBufferPointer { outcomes in
                    var call = crudd_write()
                    call.struct_size = UInt32(MemoryLayout<crudd_write>.size)
                    call.flags = UInt32(flags)
                    call.mutations = asked.baseAddress
                    call.outcomes = outcomes.baseAddress
                    call.count = asked.count
                    return storage.write { table.pointee.write(backend, &call, failure) }
                }
            }
        }
        reply.raw(#""outcomes":["#)
        for (position, outcome) in outcomes.enumerated() {
            if position > 0 { reply.raw(",") }
            write(outcome)
        }
        reply.raw("]")
    }

    private func write(_ outcome: crudd_outcome) {
        reply.raw(#"{"status":""#)
        reply.raw(StatusName.name(of: Int(outcome.status)))
        reply.raw(outcome.replaced != 0 ? #"","replaced":true"# : #"""#)
        if Int(outcome.status) == CRUDD_MISMATCH {
            reply.raw(#","revision":"#)
            withUnsafeBytes(of: outcome.revision) { revision in
                let size = min(Int(outcome.revision_size), revision.count)
                reply.string(UnsafeRawBufferPointer(rebasing: revision[..<size]))
            }
        }
        reply.raw("}")
    }
}

/// A mutation as it stands in a request.
private struct MutationInRequest {
    var collection = 0
    var kind = CRUDD_PUT
    var precondition = CRUDD_IF_ANY
    var id: FrameText?
    var item: FrameText?
    var revision: FrameText?
    var expected: FrameText?

    /// The mutation as the plugin sees it; its addresses hold as long as the request.
    func mutation(_ request: borrowing FrameReader, in collection: Storage.OpenCollection) -> crudd_mutation {
        func bytes(_ text: FrameText?, _ request: borrowing FrameReader) -> crudd_bytes {
            text.map { crudd_bytes(request.bytes($0)) } ?? crudd_bytes(data: nil, size: 0)
        }
        return crudd_mutation(
            collection: collection.handle, kind: UInt32(kind), precondition: UInt32(precondition),
            id: bytes(id, request), item: bytes(item, request), revision: bytes(revision, request),
            expected: bytes(expected, request))
    }
}

extension FrameReader {
    fileprivate mutating func mutation() throws(FrameFault) -> MutationInRequest {
        var mutation = MutationInRequest()
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "collection") {
                mutation.collection = try reader.count()
            } else if reader.isKey(key, "kind") {
                mutation.kind = try reader.kind()
            } else if reader.isKey(key, "id") {
                mutation.id = try reader.string()
            } else if reader.isKey(key, "precondition") {
                mutation.precondition = try reader.precondition()
            } else if reader.isKey(key, "expected") {
                mutation.expected = try reader.string()
            } else if reader.isKey(key, "revision") {
                mutation.revision = try reader.string()
            } else if let item = try reader.item(key) {
                mutation.item = item
            } else {
                try reader.skip()
            }
        }
        return mutation
    }

    private mutating func kind() throws(FrameFault) -> Int {
        switch try text() {
        case "put": CRUDD_PUT
        case "remove": CRUDD_REMOVE
        case "check": CRUDD_CHECK
        case let other: throw FrameFault("there is no kind \(other)")
        }
    }

    private mutating func precondition() throws(FrameFault) -> Int {
        switch try text() {
        case "any": CRUDD_IF_ANY
        case "absent": CRUDD_IF_ABSENT
        case "present": CRUDD_IF_PRESENT
        case "revision": CRUDD_IF_REVISION
        case let other: throw FrameFault("there is no precondition \(other)")
        }
    }
}
