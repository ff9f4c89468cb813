import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDQuery
import CRUDStorage
import CRUDWire

/// One request on its way from its session to its handler. It is passed on by borrowing, which costs nothing.
struct Call: ~Copyable {
    let session: Session
    /// The batch array of which the request is an element, and in whose reply the response goes; nil for a request that
    /// is a frame of its own.
    let array: BatchArray?
    /// The text in which the request stands.
    // A pointer, since a struct can hold a span by an experimental feature only. The bytes are those of the session's
    // input, of a waiting request or of a batch array, and stay in place for as long as the call is handled.
    let text: UnsafeBufferPointer<UInt8>
    let request: Request
    /// When it has come, and when it has waited long enough, on the loop's clock.
    let arrival: Duration
    let deadline: Duration
    /// How many bytes its session is charged for its text while it is in flight.
    let chargedBytes: Int

    /// How many bytes its session is charged while it is in flight, if it selects records: its text and what filter,
    /// order and fields are decoded to. Strings take as much as their text; short values up to thirteen times as much,
    /// but a request may have no more than about 11 000 of them.
    var chargedBytesOfSelection: Int {
        [Parameter.filter, .sort, .fields].reduce(chargedBytes) { sum, parameter in
            guard let count = request[parameter]?.count else { return sum }
            return sum + count + min(count * 16, 512 << 10)
        }
    }
    /// Whether it has waited for earlier requests of its session and is now the first.
    let hasWaited: Bool
    /// What was read of a `record.batch` before it waited.
    let operations: [Operation]?

    // MARK: Parameters

    var method: Method { request.method }

    subscript(parameter: Parameter) -> JSONSlice? { request[parameter] }

    /// The trace that it belongs to; nil: none.
    var traceParent: TraceParent? { request.traceParent(text.span) }

    func isTrue(_ parameter: Parameter) -> Bool { request[parameter]?.kind == .true }

    /// A value as it was sent.
    func copy(_ value: JSONSlice) -> [UInt8] { value.bytes(text.span) }

    /// What a string spells, as UTF-8.
    func decode(_ string: JSONSlice) -> [UInt8] { string.decodedString(text.span) }

    /// Calls `body` with what a string spells, which is copied only where it has escapes.
    func withDecoded<Result, Failure>(
        _ string: JSONSlice, _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if string.hasEscapes { return try body(decode(string).span) }
        return try body(text.span.extracting(string.content))
    }

    /// The first elements of a parameter that is an array of strings; none where it was not given.
    ///
    /// - Throws: `invalid_params`.
    func strings(_ parameter: Parameter, atMost maximum: Int) throws(CRUDError) -> [JSONSlice] {
        guard let strings = request[parameter]?.elements(text.span, atMost: maximum) else { return [] }
        guard strings.allSatisfy({ $0.kind == .string }) else { throw parameter.invalid("must be an array of strings") }
        return strings
    }

    /// What `fields` says; nil: the whole item.
    ///
    /// - Throws: `invalid_params`.
    var fields: FieldProjection? {
        get throws(CRUDError) {
            guard let fields = request[.fields] else { return nil }
            return try FieldProjection(json: text.span.extracting(fields.range))
        }
    }

    /// What `limit` says; of numbers over 64 bits the highest.
    ///
    /// - Throws: `invalid_params` where it is less than 1.
    var limit: Int? {
        get throws(CRUDError) {
            guard let limit = request[.limit] else { return nil }
            let isNegative = text[limit.start] == UInt8(ascii: "-")
            let count = limit.integer(text.span) ?? .max
            guard !isNegative, count > 0 else { throw Parameter.limit.invalid("must be at least 1") }
            return count
        }
    }

    // MARK: Order

    /// Whether the call may start on a collection, or has to wait for earlier ones or for room.
    ///
    /// - Parameter replyBytes: how much room the reply needs at least, beside a few bytes.
    func admission(_ kind: RequestKind, to collection: Collection, replyBytes: Int) -> Disposition {
        // An array has room for the replies to all of its elements.
        if let array {
            // What the session has sent before the array comes first.
            let isAdmitted =
                array.admits(kind, on: collection.client) && session.admits(kind, on: collection, hasWaited: false)
            return isAdmitted ? .accepted : .mustWaitForArray(nil)
        }
        if session.admits(kind, on: collection, hasWaited: hasWaited),
            replyBytes == 0 || session.hasRoom(for: replyBytes)
        {
            return .accepted
        }
        return .mustWait(Wait(collections: [collection], kind: kind, neededBytes: max(1, replyBytes)))
    }

    /// How much room for its reply a call gets that may start: as much as leaves room for as much again. What that does
    /// not suffice for is found later.
    func grant(atLeast least: Int, atMost most: Int) -> Int {
        guard array == nil else { return most }
        var bytes = most
        while bytes > least, !session.hasRoom(for: 2 * bytes) { bytes /= 2 }
        return max(bytes, min(least, most))
    }

    /// How much room a page gets, which may end early: all that it can take where there is plenty of room, else the
    /// least. What that does not suffice for begins again. In an array it leaves room for the elements after it.
    func grant(pageOfAtLeast least: Int, atMost most: Int) -> Int {
        if let array { return max(0, most) / max(1, array.elementsLeft) }
        return least >= most || session.hasRoom(for: 2 * most) ? most : least
    }

    // MARK: Replies

    /// Whether there is anybody to read a reply. What only reads is not executed otherwise.
    var wantsReply: Bool { request.id != nil && session.isWanted }

    /// Does nothing: the call only reads, and nobody wants its reply.
    func skip() {
        if request.id == nil { session.count(method, .ok, arrival: arrival) }
    }

    /// How many bytes the response may have.
    func room(_ limits: Configuration.Limits) -> Int { array?.room ?? limits.frameBytes }

    /// Room for the items that the response holds.
    func budget(_ limits: Configuration.Limits) -> ByteBudget {
        if let array { return array.budget }
        let overhead = StreamBuffer.responseBytesWithoutItem + (request.id?.count ?? 0)
        return ByteBudget(bytes: limits.frameBytes - overhead)
    }

    /// Replies, unless the request is a notification.
    ///
    /// - Parameter result: appends the value of `result`, or throws the error to reply instead.
    func reply(_ result: (inout StreamBuffer) throws(CRUDError) -> Void) {
        _ = replyIfAvailable { output throws(CRUDError) in
            try result(&output)
            return true
        }
    }

    /// Replies, unless the request is a notification.
    ///
    /// - Parameter result: as of ``reply(_:)``; returns false if there is nothing to reply yet.
    /// - Returns: what `result` has returned.
    func replyIfAvailable(_ result: (inout StreamBuffer) throws(CRUDError) -> Bool) -> Bool {
        let outcome =
            if let id = request.id {
                session.reply(to: text.span.extracting(id.range), in: array, result)
            } else {
                StreamBuffer.outcome(of: result)
            }
        guard let outcome else { return false }
        let hasComeNow = session.count(method, outcome, arrival: arrival)
        if let slow = session.loop.slow, !hasComeNow || !slow.excludes(since: session.loop.nowNanoseconds),
            let duration = slow.duration(since: arrival)
        {
            noteSlow(duration)
        }
        return true
    }

    private func noteSlow(_ duration: Duration) {
        let records = (request[.ids] ?? request[.operations])?.elements(text.span, atMost: session.loop.limits.batch)
        let collection: [UInt8]? = if let name = request[.collection] { decode(name) } else { nil }
        session.noteSlow(
            SlowRequest(
                method, on: collection, records: records?.count ?? 1, duration: duration,
                waited: session.loop.now - arrival, from: session.origin, traceParent, nil))
    }

    /// Replies with an error, unless the request is a notification.
    func fail(_ error: CRUDError) {
        let error = naming(error)
        reply { _ throws(CRUDError) in throw error }
    }

    /// An error whose message names what the call is about.
    private func naming(_ error: CRUDError) -> CRUDError {
        guard !error.namesSubject, let name = request[.collection] else { return error }
        guard let id = request[.id] else { return error.about(collection: decode(name)) }
        return error.about(decode(id), in: decode(name))
    }
}

/// What became of a call.
enum Disposition {
    /// It has been executed, or is in flight.
    case accepted
    /// Earlier requests of its session come first, or there is no room.
    case mustWait(Wait)
    /// Earlier elements of its batch array come first.
    ///
    /// - Parameter operations: what has been read of a `record.batch`.
    case mustWaitForArray([Operation]?)
}

/// What a session hands its calls to.
protocol CallHandler: AnyObject {
    /// Executes a call: replies to it, or sees that it is replied to later.
    func handle(_ call: borrowing Call) -> Disposition
}
