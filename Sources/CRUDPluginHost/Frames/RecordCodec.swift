import CRUDJSON
import CRUDModel
package import CRUDPluginABI

/// A record in a reply: `{"index":0,"item":15,"revision":5,"expiresAt":1767225600000,"sequence":8}`, or with `id` in
/// the place of `index`. One that was removed is `{"id":3,"removed":true,"sequence":9}`.
package enum RecordCodec {
    /// Whether bytes may be a revision: 1 to 64 of printable ASCII.
    package static func isRevision(_ bytes: UnsafeRawBufferPointer) -> Bool {
        1...Naming.maximumRevisionBytes ~= bytes.count && bytes.allSatisfy { 0x20..<0x7F ~= $0 }
    }

    /// Whether bytes may be an id: 1 to 512 of UTF-8 without control characters.
    package static func isID(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let id = bytes.bindMemory(to: UInt8.self).span
        guard Naming.violation(id, maximum: Naming.maximumIDBytes) == nil else { return false }
        var index = 0
        while index < id.count {
            let length = wellFormedScalarLength(id, at: index)
            if length == 0 { return false }
            index += length
        }
        return true
    }
}

extension crudd_record {
    /// Whether it was removed, and has nothing but an id and the sequence number of its removal.
    package var isRemoved: Bool { Int(flags) & CRUDD_RECORD_REMOVED != 0 }
}

extension FrameWriter {
    /// Writes a record that a scan has found.
    package mutating func record(_ record: crudd_record, withItem: Bool) {
        raw(#"{"id":"#, bytes: record.id)
        guard record.isRemoved else { return contents(record, withItem: withItem) }
        raw(#","removed":true,"sequence":"#, record.sequence)
        raw("}")
    }

    /// Writes a record that was read by id.
    ///
    /// - Parameter index: the position of its id in the request.
    package mutating func record(_ record: crudd_record, at index: Int, withItem: Bool) {
        raw(#"{"index":"#, index)
        contents(record, withItem: withItem)
    }

    private mutating func contents(_ record: crudd_record, withItem: Bool) {
        if withItem {
            raw(#","item":"#, bytes: record.item)
        }
        raw(#","revision":"#, bytes: record.revision)
        if record.expires_at != 0 {
            raw(#","expiresAt":"#, record.expires_at)
        }
        if record.sequence != 0 {
            raw(#","sequence":"#, record.sequence)
        }
        raw("}")
    }
}

extension FrameReader {
    /// Reads the result of `read`, `scan` or `removeExpired`, or a frame of it.
    ///
    /// - Parameters:
    ///   - take: takes a record, whose bytes stay as long as the frame, and its `index`; nil where it has none.
    ///   - member: takes what else there is, or passes over it.
    mutating func records(
        _ take: (Int?, inout crudd_record) throws(ProtocolViolation) -> Void,
        member: (inout FrameReader, FrameString) throws(ProtocolViolation) -> Void = {
            (reader, _) throws(ProtocolViolation) in try reader.skip()
        }
    ) throws(ProtocolViolation) {
        try object { (reader, key) throws(ProtocolViolation) in
            guard "records" ~= key else { return try member(&reader, key) }
            var record = crudd_record.sized()
            try reader.array { (reader) throws(ProtocolViolation) in
                let index = try reader.record(into: &record)
                try take(index, &record)
            }
        }
    }

    /// Reads the result of `read`, or a frame of it.
    ///
    /// - Parameters:
    ///   - count: how many ids were asked for.
    ///   - take: takes the record of the id at an index; returns whether another one is wanted.
    /// - Returns: whether further frames are wanted.
    mutating func recordsRead(
        of count: Int, _ take: (Int, inout crudd_record) -> Bool
    ) throws(ProtocolViolation) -> Bool {
        var isWanted = true
        try records { (index, record) throws(ProtocolViolation) in
            guard let index, index < count else { throw ProtocolViolation("a record whose id was not asked for") }
            guard !record.isRemoved else { throw ProtocolViolation("a record that was removed") }
            if isWanted { isWanted = take(index, &record) }
        }
        return isWanted
    }

    private mutating func record(into record: inout crudd_record) throws(ProtocolViolation) -> Int? {
        var index: Int?
        record = .sized()
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "index": index = try reader.count()
            case "id": record.id = crudd_bytes(try reader.bytes())
            case "item": record.item = crudd_bytes(try reader.bytes())
            case "revision": record.revision = crudd_bytes(try reader.bytes())
            case "removed": record.flags = try reader.bool() ? UInt32(CRUDD_RECORD_REMOVED) : 0
            case "expiresAt": record.expires_at = Int64(try reader.signedInteger())
            case "sequence": record.sequence = try reader.integer()
            default: try reader.skip()
            }
        }
        guard record.isRemoved || RecordCodec.isRevision(record.revision.buffer) else {
            throw ProtocolViolation(
                "a revision that is not 1 to \(Naming.maximumRevisionBytes) bytes of printable ASCII")
        }
        return index
    }
}
