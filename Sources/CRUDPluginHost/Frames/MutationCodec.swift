package import CRUDPluginABI

/// Mutations and their outcomes, the elements of the parameters and the result of `write`.
extension FrameWriter {
    /// Writes a mutation of the collection with a number.
    mutating func mutation(_ mutation: crudd_mutation, collection: Int) {
        let kind = Int(mutation.kind)
        let record = crudd_record.read(mutation.record)
        raw(#"{"collection":"#, collection)
        switch kind {
        case CRUDD_PUT: raw(#","kind":"put","id":"#)
        case CRUDD_REMOVE: raw(#","kind":"remove","id":"#)
        case CRUDD_SET_KEYS: raw(#","kind":"setKeys","id":"#)
        default: raw(#","kind":"check","id":"#)
        }
        bytes(record.id)
        switch Int(mutation.precondition) {
        case CRUDD_IF_ABSENT: raw(#","precondition":"absent""#)
        case CRUDD_IF_PRESENT: raw(#","precondition":"present""#)
        case CRUDD_IF_REVISION:
            raw(#","precondition":"revision","expected":"#, bytes: mutation.expected)
        default: raw(#","precondition":"any""#)
        }
        if kind == CRUDD_PUT { contents(record) }
        if kind == CRUDD_PUT || kind == CRUDD_REMOVE {
            raw(#","sequence":"#, record.sequence)
        }
        if kind == CRUDD_PUT || kind == CRUDD_SET_KEYS { keys(record) }
        raw("}")
    }

    private mutating func contents(_ record: crudd_record) {
        raw(#","item":"#, bytes: record.item)
        raw(#","revision":"#, bytes: record.revision)
        if record.expires_at != 0 {
            raw(#","expiresAt":"#, record.expires_at)
        }
    }

    private mutating func keys(_ record: crudd_record) {
        guard record.key_count > 0 else { return }
        raw(#","keys":"#)
        array(UnsafeBufferPointer(start: record.keys, count: record.key_count)) { $0.bytes($1) }
    }

    /// Writes an outcome.
    package mutating func outcome(_ outcome: crudd_outcome) {
        raw(#"{"status":""#)
        raw(StatusName.name(of: Int(outcome.status)))
        raw(outcome.replaced != 0 ? #"","replaced":true"# : #"""#)
        if Int(outcome.status) == CRUDD_MISMATCH {
            raw(#","revision":"#)
            withUnsafeBytes(of: outcome.revision) { revision in
                bytes(UnsafeRawBufferPointer(rebasing: revision.prefix(Int(outcome.revision_size))))
            }
        }
        raw("}")
    }
}

/// A mutation that was read from a frame; its bytes stay as long as the frame.
package struct MutationInFrame {
    /// The number of its collection.
    package var collection = 0
    /// Lacks its collection and its record.
    package var mutation = crudd_mutation.sized()
    /// Lacks its keys.
    package var record = crudd_record.sized()
    /// Where its keys stand among those of all.
    package var keys = 0..<0
}

extension FrameReader {
    /// Takes a mutation.
    ///
    /// - Parameter keys: its keys are appended to these.
    package mutating func mutation(keys: inout [crudd_bytes]) throws(ProtocolViolation) -> MutationInFrame {
        var read = MutationInFrame()
        let firstKey = keys.count
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "collection": read.collection = try reader.count()
            case "kind": read.mutation.kind = UInt32(try reader.kind())
            case "id": read.record.id = crudd_bytes(try reader.bytes())
            case "precondition": read.mutation.precondition = UInt32(try reader.precondition())
            case "expected": read.mutation.expected = crudd_bytes(try reader.bytes())
            case "item": read.record.item = crudd_bytes(try reader.bytes())
            case "revision": read.record.revision = crudd_bytes(try reader.bytes())
            case "expiresAt": read.record.expires_at = Int64(try reader.count())
            case "sequence": read.record.sequence = try reader.integer()
            case "keys":
                try reader.array { (reader) throws(ProtocolViolation) in keys.append(crudd_bytes(try reader.bytes())) }
            default: try reader.skip()
            }
        }
        read.keys = firstKey..<keys.count
        return read
    }

    private mutating func kind() throws(ProtocolViolation) -> Int {
        switch try string() {
        case "put": return CRUDD_PUT
        case "remove": return CRUDD_REMOVE
        case "check": return CRUDD_CHECK
        case "setKeys": return CRUDD_SET_KEYS
        case let other: throw ProtocolViolation("an unknown kind of mutation, \(other.text)")
        }
    }

    private mutating func precondition() throws(ProtocolViolation) -> Int {
        switch try string() {
        case "any": return CRUDD_IF_ANY
        case "absent": return CRUDD_IF_ABSENT
        case "present": return CRUDD_IF_PRESENT
        case "revision": return CRUDD_IF_REVISION
        case let other: throw ProtocolViolation("an unknown precondition, \(other.text)")
        }
    }

    /// Takes an outcome.
    mutating func outcome() throws(ProtocolViolation) -> crudd_outcome {
        var outcome = crudd_outcome.sized()
        var status: Int?
        var revision = UnsafeRawBufferPointer(start: nil, count: 0)
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "status": status = try reader.status()
            case "replaced": outcome.replaced = try reader.bool() ? 1 : 0
            case "revision": revision = try reader.bytes()
            default: try reader.skip()
            }
        }
        guard let status else { throw ProtocolViolation("an outcome without a status") }
        outcome.status = crudd_status(status)
        if status == CRUDD_MISMATCH {
            guard RecordCodec.isRevision(revision) else {
                throw ProtocolViolation("a mismatch without the revision that is there")
            }
            withUnsafeMutableBytes(of: &outcome.revision) { $0.copyBytes(from: revision) }
            outcome.revision_size = UInt32(revision.count)
        }
        return outcome
    }
}
