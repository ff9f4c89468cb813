import CRUDPluginABI

/// One frame of a reply, read.
struct ChildReply {
    /// What the child says it failed with; nil where it has answered.
    private(set) var failure: PluginFailure?
    /// Whether further frames belong to the reply.
    private(set) var hasMore = false
    /// Whether they are of use.
    private(set) var isWanted = true

    /// Reads a result, or one part of it after the other; answers whether further parts are of use.
    typealias ReadResult = (inout FrameReader) throws(FrameFault) -> Bool

    /// Reads a frame.
    ///
    /// - Parameters:
    ///   - number: the request's.
    ///   - isWanted: whether anybody wants the result.
    init(
        from reader: inout FrameReader, number: Int, isWanted: Bool, _ result: ReadResult
    ) throws(FrameFault) {
        var found: Int?
        var hasResult = false
        try reader.object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "id") {
                found = try reader.count()
            } else if reader.isKey(key, "result"), !hasResult {
                hasResult = true
                if isWanted { self.isWanted = try result(&reader) } else { try reader.skip() }
            } else if reader.isKey(key, "error") {
                failure = try reader.failure()
            } else if reader.isKey(key, "more") {
                hasMore = try reader.bool()
            } else {
                try reader.skip()
            }
        }
        try reader.expectEnd()
        guard found == number else { throw FrameFault("a reply to another request than \(number)") }
        guard hasResult != (failure != nil), !(hasMore && failure != nil) else {
            throw FrameFault("a reply with not one of result and error")
        }
    }
}

extension FrameReader {
    /// Takes the `error` of a reply.
    fileprivate mutating func failure() throws(FrameFault) -> PluginFailure {
        var failure = PluginFailure(status: CRUDD_OK, message: "", pointer: "")
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "status") {
                failure.status = try reader.status()
            } else if reader.isKey(key, "message") {
                failure.message = try reader.text()
            } else if reader.isKey(key, "pointer") {
                failure.pointer = try reader.text()
            } else {
                try reader.skip()
            }
        }
        guard failure.status != CRUDD_OK else { throw FrameFault("an error without a status") }
        return failure
    }

    /// Takes the name of a status.
    mutating func status() throws(FrameFault) -> Int {
        guard let status = StatusName.status(named: bytes(try string())) else {
            throw FrameFault("a status that there is not")
        }
        return status
    }
}
