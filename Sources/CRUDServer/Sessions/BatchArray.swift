import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDStorage
import CRUDWire

/// A batch array of requests in execution: its elements take effect in order, and one array of responses is the reply.
///
/// An element starts once those before it are done, or together with them where all are writes to one backend, which
/// executes them in order anyway; so a thousand creates are one commit. While elements are left the session's later
/// frames wait.
final class BatchArray {
    /// The frame, kept because elements outlive the iteration in which it came.
    let text: [UInt8]
    let elements: [JSONSlice]
    /// When it has come, and when elements that have not been started have waited long enough, on the loop's clock.
    let arrival: Duration
    let deadline: Duration
    /// The first element that has not been started.
    var next = 0
    /// How many elements have been counted for the rate of their user.
    var meteredCount = 0
    /// How many elements have been started and have no reply yet.
    private(set) var inFlight = 0
    /// The backend that all elements in flight write to; nil if they do anything else.
    private var writesTo: BackendClient?
    /// How many bytes its session is charged for it.
    var chargedBytes: Int
    /// Whether what the reply may take is among the bytes that are charged, so that elements may start.
    var hasRoom = false
    /// Whether the next element waits for requests before the array, and for nothing else.
    var isBehind = false
    /// How much of the room for the reply is charged only while elements may start: it may get as long as a frame, for
    /// which one element that reads many records is enough.
    var replyReserve: Int { max(0, frameBytes - responses.count) }
    /// What has been read of the next element, a `record.batch` that has to wait.
    var operations: [Operation]?
    /// Room for the items in the replies to the elements in flight.
    private var sharedBudget: ByteBudget?
    /// The responses so far, with commas between.
    private var responses = StreamBuffer()
    private let frameBytes: Int
    /// Whether the responses do not fit a frame even though the last are errors; they have been dropped.
    private var isTooLong = false

    init(
        text: [UInt8], elements: [JSONSlice], arrival: Duration, deadline: Duration, _ limits: Configuration.Limits
    ) {
        self.text = text
        self.elements = elements
        self.arrival = arrival
        self.deadline = deadline
        frameBytes = limits.frameBytes
        chargedBytes = text.count
    }

    /// The charge, which is the caller's to give back.
    func takeCharge() -> Int {
        defer { chargedBytes = 0 }
        return chargedBytes
    }

    /// Whether all elements have been started.
    var isStarted: Bool { next == elements.count }

    /// Whether all elements have been started and have their replies.
    var isFinished: Bool { isStarted && inFlight == 0 }

    /// How many elements have not been started.
    var elementsLeft: Int { elements.count - next }

    // MARK: Order

    /// Whether the next element must wait for those in flight, whatever it is.
    var isBlocked: Bool { inFlight > 0 && writesTo == nil }

    /// Whether a request may start now as far as the elements before it are concerned.
    ///
    /// - Parameter client: of the backend that it uses; nil: several, or none.
    func admits(_ kind: RequestKind, on client: BackendClient?) -> Bool {
        inFlight == 0 || (kind == .write && client != nil && writesTo === client)
    }

    /// Counts an element that is in flight.
    ///
    /// - Parameter client: of the backend that executes it; nil: something else does.
    func started(_ kind: RequestKind, on client: BackendClient?) {
        let isFirstOrSame = inFlight == 0 || writesTo === client
        inFlight += 1
        writesTo = kind == .write && isFirstOrSame ? client : nil
    }

    /// Counts an element that has been replied to.
    func replied() {
        inFlight -= 1
        if inFlight == 0 { sharedBudget = nil }
    }

    // MARK: The reply

    /// How long a response may be that still fits the reply, with its comma and the brackets.
    var room: Int { frameBytes - responses.count - 3 }

    /// Room for the items in the reply to the next element, which it shares with those in flight. What replies without
    /// items take is set aside.
    var budget: ByteBudget {
        if inFlight > 0, let sharedBudget { return sharedBudget }
        let budget = ByteBudget(bytes: room - elementsLeft * StreamBuffer.responseBytesWithoutItem)
        sharedBudget = budget
        return budget
    }

    /// Appends the response to an element; parameters and result as of
    /// ``StreamBuffer/appendFrame(to:maximumBytes:_:)``.
    func appendResponse(
        to id: Span<UInt8>?, _ result: (inout StreamBuffer) throws(CRUDError) -> Bool
    ) -> RequestOutcome? {
        let room = room
        let start = responses.count
        if start > 0 { responses.append(UInt8(ascii: ",")) }
        let outcome = responses.appendResponse(to: id, maximumBytes: room, frameBytes: frameBytes, result)
        if responses.count - start > room + 1 { isTooLong = true }
        // What has been executed is executed, though nobody will read of it.
        if isTooLong { responses = StreamBuffer() } else if outcome == nil { responses.truncate(to: start) }
        return outcome
    }

    /// Appends the whole reply as one frame; nothing where no element has a response.
    func finish(into output: inout StreamBuffer) {
        if isTooLong {
            _ = output.appendFrame(to: nil, maximumBytes: .max) { [frameBytes] _ throws(CRUDError) in
                throw .replyTooLong(maximumBytes: frameBytes)
            }
        } else if !responses.isEmpty {
            output.append(bigEndian: UInt32(truncatingIfNeeded: responses.count + 2))
            output.append(UInt8(ascii: "["))
            output.append(responses)
            output.append(UInt8(ascii: "]"))
        }
        responses = StreamBuffer()
    }
}
