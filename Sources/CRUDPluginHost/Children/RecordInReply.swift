import CRUDModel
import CRUDPluginABI

/// A record in a reply, its texts valid until the next one is read.
struct RecordInReply {
    var index: Int?
    var id: UnsafeRawBufferPointer?
    var item = UnsafeRawBufferPointer(start: nil, count: 0)
    var revision = UnsafeRawBufferPointer(start: nil, count: 0)
}

extension FrameReader {
    /// Reads the result of `read`, or a frame of it.
    ///
    /// - Parameters:
    ///   - count: how many ids were asked for.
    ///   - take: takes the record of the id at an index; answers whether another one is wanted.
    /// - Returns: whether further frames are wanted.
    mutating func lookup(of count: Int, _ take: (Int, RecordInReply) -> Bool) throws(FrameFault) -> Bool {
        var isWanted = true
        try records { record throws(FrameFault) in
            guard let index = record.index, index < count else { throw FrameFault("a wrong index") }
            if isWanted { isWanted = take(index, record) }
        }
        return isWanted
    }

    /// Reads a result with `records`, and `plan` where there is one.
    mutating func records(
        _ take: (RecordInReply) throws(FrameFault) -> Void,
        plan: (inout FrameReader) throws(FrameFault) -> Void = { (reader) throws(FrameFault) in try reader.skip() }
    ) throws(FrameFault) {
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "records") {
                try reader.array { (reader) throws(FrameFault) in
                    try take(try reader.record())
                    reader.forgetTexts()
                }
            } else if reader.isKey(key, "plan") {
                try plan(&reader)
            } else {
                try reader.skip()
            }
        }
    }

    private mutating func record() throws(FrameFault) -> RecordInReply {
        var record = RecordInReply()
        var id: FrameText?
        var item: FrameText?
        var revision: FrameText?
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "index") {
                record.index = try reader.count()
            } else if reader.isKey(key, "id") {
                id = try reader.string()
            } else if reader.isKey(key, "revision") {
                revision = try reader.string()
            } else if let found = try reader.item(key) {
                item = found
            } else {
                try reader.skip()
            }
        }
        // All are decoded: from here on they stay where they are.
        guard let revision else { throw FrameFault("a record without a revision") }
        record.revision = bytes(revision)
        guard record.revision.count <= Naming.maximumRevisionBytes, record.revision.allSatisfy({ $0 < 0x80 }) else {
            throw FrameFault("a revision that is not at most \(Naming.maximumRevisionBytes) characters of ASCII")
        }
        record.id = id.map { bytes($0) }
        if let item { record.item = bytes(item) }
        return record
    }
}

extension FrameWriter {
    /// Writes what `read` is asked.
    mutating func lookup(_ ids: some Sequence<crudd_bytes>, in collection: Int, withItems: Bool) {
        raw(#""collection":"#)
        integer(collection)
        raw(#","ids":["#)
        var isFirst = true
        for id in ids {
            if !isFirst { raw(",") }
            isFirst = false
            string(id.buffer)
        }
        raw(withItems ? #"],"items":true"# : #"],"items":false"#)
    }
}
