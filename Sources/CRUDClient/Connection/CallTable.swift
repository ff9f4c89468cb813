import CRUDJSON
import CRUDModel
import CRUDWire
import NIOCore

/// The calls in flight: the state of each, and its transitions.
///
/// A call is `waiting` until its frame is passed to the channel, then `sent` until its reply comes: the channel may
/// have written any part of it to the socket. While the daemon does not read, the channel takes no more than a burst or
/// two beyond what the socket holds; the other calls wait.
///
/// A call that was sent and is given up (its task was cancelled, its deadline has passed) fails at once; its id is kept
/// in `abandoned`, so that a late reply is not mistaken for a protocol violation. Where the daemon may hold back the
/// reply it is told to cancel the request, which would occupy it until then.
struct CallTable {
    /// In the order in which they will be sent.
    private var waiting: [PendingCall] = []
    private var sent: [Int: PendingCall] = [:]
    private var abandoned: Set<Int> = []
    /// The ids of those that the daemon is to be told of.
    private var cancellations: [Int] = []

    var hasWaiting: Bool { !waiting.isEmpty }

    /// Whether there is anything to send.
    var hasUnsent: Bool { hasWaiting || !cancellations.isEmpty }

    mutating func add(_ call: PendingCall) {
        waiting.append(call)
    }

    /// Moves cancellations and waiting calls to `buffer` until it has `targetBytes` bytes, at least one of them.
    ///
    /// A frame longer than `maximumFrameBytes` is rejected here: the daemon would close the connection because of it.
    mutating func send(into buffer: inout ByteBuffer, targetBytes: Int, maximumFrameBytes: Int) {
        var count = 0
        while count < cancellations.count, buffer.writerIndex < targetBytes {
            let frame = RequestEncoder.notification(method: RemoteMethod.cancel.name) { [id = cancellations[count]] in
                $0.object { $0.member("id", id) }
            }
            buffer.writeBytes(frame)
            count += 1
        }
        cancellations.removeFirst(count)
        count = 0
        while count < waiting.count, buffer.writerIndex < targetBytes {
            let call = waiting[count]
            count += 1
            guard call.frame.count - FrameHeader.size <= maximumFrameBytes else {
                call.fail(.frameTooLong(call, maximum: maximumFrameBytes))
                continue
            }
            buffer.writeBytes(call.frame)
            sent[call.id] = call
        }
        waiting.removeFirst(count)
    }

    /// Removes and returns the call with `id`, whose reply has come.
    ///
    /// - Returns: nil if there was no such request; `.some(nil)` if it was abandoned.
    mutating func takeReplied(_ id: Int) -> PendingCall?? {
        if let call = sent.removeValue(forKey: id) { return .some(call) }
        return abandoned.remove(id) == nil ? nil : .some(nil)
    }

    /// Cancels the call with `id`, if it is still in flight.
    mutating func cancel(_ id: Int) {
        if let index = waiting.firstIndex(where: { $0.id == id }) {
            waiting.remove(at: index).cancel()
        } else if let call = sent[id] {
            abandon(call)
            switch call.method.effect {
            case .reads: call.cancel()
            case .writes: call.fail(.outcomeUnknown(call, "was cancelled after it had been sent", CancellationError()))
            }
        }
    }

    /// Expects no reply to a call that was sent, but does not wonder at one.
    private mutating func abandon(_ call: PendingCall) {
        sent[call.id] = nil
        abandoned.insert(call.id)
        if call.isHeldBack { cancellations.append(call.id) }
    }

    /// Forgets what was sent: the connection is lost.
    private mutating func forgetSent() {
        sent.removeAll(keepingCapacity: true)
        abandoned.removeAll()
        cancellations.removeAll()
    }

    /// Fails the calls whose deadline has passed.
    ///
    /// - Parameter obstacle: why waiting calls could not be sent, if that is known.
    /// - Returns: the earliest deadline of the others.
    mutating func expire(at now: NIODeadline, obstacle: CRUDError?) -> NIODeadline? {
        var earliest: NIODeadline?
        waiting.removeAll { call in
            guard call.deadline <= now else {
                earliest = min(earliest ?? call.deadline, call.deadline)
                return false
            }
            call.fail(.neverSent(call, obstacle))
            return true
        }
        var overdue: [PendingCall] = []
        for call in sent.values {
            if call.deadline <= now {
                overdue.append(call)
            } else {
                earliest = min(earliest ?? call.deadline, call.deadline)
            }
        }
        for call in overdue {
            abandon(call)
            switch call.method.effect {
            case .reads: call.fail(.timedOut(call))
            case .writes: call.fail(.outcomeUnknown(call, "got no reply by its deadline", DeadlineExceeded()))
            }
        }
        return earliest
    }

    /// The connection is lost: calls that only read will be sent again, before all later ones; writes fail.
    mutating func connectionLost(_ error: CRUDError) {
        var again: [PendingCall] = []
        for call in sent.values {
            switch call.method.effect {
            case .reads: again.append(call)
            case .writes: call.fail(.outcomeUnknown(call, "was sent, but the connection was lost", error))
            }
        }
        waiting.insert(contentsOf: again.sorted { $0.id < $1.id }, at: 0)
        forgetSent()
    }

    /// The daemon has replied to the calls before a frame that is too long, and has executed none of the others: all of
    /// them will be sent again, those that have become too long excepted.
    mutating func frameRejected() {
        waiting.insert(contentsOf: sent.values.sorted { $0.id < $1.id }, at: 0)
        forgetSent()
    }

    /// The daemon has violated the protocol: all calls that were sent fail; sending reads again would not help.
    mutating func protocolViolated(_ error: CRUDError) {
        for call in sent.values where call.method.effect == .reads {
            sent[call.id] = nil
            call.fail(error)
        }
        connectionLost(error)
    }

    /// Fails all calls.
    mutating func close(_ error: CRUDError) {
        for call in sent.values {
            switch call.method.effect {
            case .reads: call.fail(error)
            case .writes: call.fail(.outcomeUnknown(call, "was sent, but the client was closed", error))
            }
        }
        for call in waiting { call.fail(error) }
        self = CallTable()
    }
}
