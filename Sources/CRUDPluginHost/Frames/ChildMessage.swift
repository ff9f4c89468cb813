import CRUDPluginABI

/// A frame that a child has sent.
enum ChildMessage {
    case reply(ChildReply)
    /// The call in progress advances.
    case progress(done: UInt64, total: UInt64)
    /// The storage was lost, or is back.
    case state(isUp: Bool, reason: String)
    /// More changes of a collection can be read, or it may have been made.
    case changed(name: [UInt8])
}

/// One frame of a reply.
struct ChildReply {
    /// What the child says it failed with; nil where it has a result.
    var failure: PluginFailure?
    /// Whether further frames belong to the reply.
    var hasMore = false
    /// Whether they are wanted.
    var isWanted: Bool

    /// Reads a result, or one part of it after the other; returns whether further parts are wanted.
    typealias ReadResult = (inout FrameReader) throws(ProtocolViolation) -> Bool

    /// Passes over a result that says nothing.
    static func skipResult(_ reader: inout FrameReader) throws(ProtocolViolation) -> Bool {
        try reader.skip()
        return true
    }
}

extension FrameReader {
    /// Reads a frame of a child.
    ///
    /// - Parameters:
    ///   - number: of the request that waits for its reply; nil where none does.
    ///   - isWanted: whether the result is to be read.
    ///   - result: reads it.
    mutating func message(
        replyTo number: Int?, isWanted: Bool = true,
        _ result: ChildReply.ReadResult = { (_) throws(ProtocolViolation) in false }
    ) throws(ProtocolViolation) -> ChildMessage {
        var message: ChildMessage?
        var method: FrameString?
        var reply = ChildReply(isWanted: isWanted)
        var found: Int?
        var hasResult = false
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "id":
                found = try reader.count()
                guard found == number else { throw .unexpectedReply(found, to: number) }
            case "result" where found != nil && !hasResult:
                hasResult = true
                if isWanted { reply.isWanted = try result(&reader) } else { try reader.skipResult() }
            case "error" where found != nil: reply.failure = try reader.failure()
            case "more": reply.hasMore = try reader.bool()
            case "method": method = try reader.string()
            case "params": message = try reader.event(method)
            default: try reader.skip()
            }
        }
        try expectEnd()
        if found == nil, let message { return message }
        guard found != nil, hasResult != (reply.failure != nil), !(reply.hasMore && reply.failure != nil) else {
            throw ProtocolViolation("neither a reply with one of result and error nor a message")
        }
        return .reply(reply)
    }

    private mutating func skipResult() throws(ProtocolViolation) {
        try skip()
        skipPayload()
    }

    /// Reads the parameters of a notification.
    private mutating func event(_ method: FrameString?) throws(ProtocolViolation) -> ChildMessage {
        var (done, total): (UInt64, UInt64) = (0, 0)
        var isUp: Bool?
        var reason = ""
        var name = ""
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "done": done = try reader.integer()
            case "total": total = try reader.integer()
            case "up": isUp = try reader.bool()
            case "reason": reason = try reader.text()
            case "name": name = try reader.text()
            default: try reader.skip()
            }
        }
        switch (method, isUp) {
        case ("progress"?, _): return .progress(done: done, total: total)
        case ("state"?, let isUp?): return .state(isUp: isUp, reason: reason)
        case ("changed"?, _) where !name.isEmpty: return .changed(name: Array(name.utf8))
        default: throw ProtocolViolation("a notification that is none of progress, state and changed")
        }
    }

    /// Reads the `error` of a reply.
    private mutating func failure() throws(ProtocolViolation) -> PluginFailure {
        var failure = PluginFailure(status: CRUDD_OK, message: "")
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "status": failure.status = try reader.status()
            case "message": failure.message = try reader.text()
            case "pointer": failure.pointer = try reader.text()
            default: try reader.skip()
            }
        }
        guard failure.status != CRUDD_OK else { throw ProtocolViolation("an error without a status") }
        return failure
    }

    /// Takes the name of a status.
    mutating func status() throws(ProtocolViolation) -> Int {
        let name = try string()
        guard let status = StatusName.status(where: { $0 ~= name }) else {
            throw ProtocolViolation("an unknown status")
        }
        return status
    }
}

extension ProtocolViolation {
    fileprivate static func unexpectedReply(_ found: Int?, to number: Int?) -> ProtocolViolation {
        ProtocolViolation(
            "a reply to request \(found ?? 0)" + (number.map { ", not to \($0)" } ?? ", which is not open"))
    }
}
