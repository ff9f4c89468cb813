import CRUDModel
import NIOCore

/// The calls that are under way, and what becomes of each when something happens to it or to the connection.
///
/// A call is `waiting` until its frame goes to the socket, then `sent` until it is answered. A caller that gives up a
/// call that was sent (its task was cancelled, its deadline has passed) is told at once; the call's id stays `abandoned`
/// so that the answer, when it comes, is not taken for that of a daemon gone mad.
struct CallTable {
    /// In the order in which they are to be sent.
    private var waiting: [Call] = []
    private var sent: [Int: Call] = [:]
    private var abandoned: Set<Int> = []

    var hasWaiting: Bool { !waiting.isEmpty }

    mutating func add(_ call: Call) {
        waiting.append(call)
    }

    /// Moves waiting calls to `buffer` until that holds `enough` bytes, one call at least.
    ///
    /// A frame longer than `maximumFrameBytes` is refused here: the daemon would close the connection on it, at the
    /// expense of every other call.
    mutating func send(into buffer: inout ByteBuffer, enough: Int, maximumFrameBytes: Int) {
        var count = 0
        while count < waiting.count, buffer.writerIndex < enough {
            var call = waiting[count]
            count += 1
            guard call.frame.count - FrameReader.headerBytes <= maximumFrameBytes else {
                call.fail(.frameTooLong(call, maximum: maximumFrameBytes))
                continue
            }
            buffer.writeBytes(call.frame)
            if call.method.effect == .writes { call.frame = [] }
            sent[call.id] = call
        }
        waiting.removeFirst(count)
    }

    /// The call that is answered under `id`.
    ///
    /// - Returns: nil where nobody asked that; `.some(nil)` where nobody waits for it any more.
    mutating func takeAnswered(_ id: Int) -> Call?? {
        if let call = sent.removeValue(forKey: id) { return .some(call) }
        return abandoned.remove(id) == nil ? nil : .some(nil)
    }

    /// The caller of `id`, if it is still under way, has been cancelled.
    mutating func cancel(_ id: Int) {
        if let index = waiting.firstIndex(where: { $0.id == id }) {
            waiting.remove(at: index).cancel()
        } else if let call = sent.removeValue(forKey: id) {
            abandoned.insert(id)
            switch call.method.effect {
            case .reads: call.cancel()
            case .writes: call.fail(.outcomeUnknown(call, "was cancelled after it had been sent", CancellationError()))
            }
        }
    }

    /// Fails the calls whose deadline has come.
    ///
    /// - Parameter obstacle: why those that wait could not be sent, where that is known.
    /// - Returns: the earliest deadline of those that are left.
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
        var overdue: [Call] = []
        for call in sent.values {
            if call.deadline <= now {
                overdue.append(call)
            } else {
                earliest = min(earliest ?? call.deadline, call.deadline)
            }
        }
        for call in overdue {
            sent[call.id] = nil
            abandoned.insert(call.id)
            switch call.method.effect {
            case .reads: call.fail(.unanswered(call))
            case .writes: call.fail(.outcomeUnknown(call, "was not answered by its deadline", DeadlineExceeded()))
            }
        }
        return earliest
    }

    /// The connection is gone: what only reads waits to be sent again, before everything that came later.
    mutating func connectionLost(_ fault: CRUDError) {
        var again: [Call] = []
        for call in sent.values {
            switch call.method.effect {
            case .reads: again.append(call)
            case .writes: call.fail(.outcomeUnknown(call, "was sent, but the connection was lost", fault))
            }
        }
        waiting.insert(contentsOf: again.sorted { $0.id < $1.id }, at: 0)
        sent.removeAll(keepingCapacity: true)
        abandoned.removeAll()
    }

    /// The daemon broke the protocol: to send the same reads again would not mend that.
    mutating func protocolBroken(_ fault: CRUDError) {
        for call in sent.values where call.method.effect == .reads {
            sent[call.id] = nil
            call.fail(fault)
        }
        connectionLost(fault)
    }

    /// There will be no connection any more.
    mutating func close(_ fault: CRUDError) {
        for call in sent.values {
            switch call.method.effect {
            case .reads: call.fail(fault)
            case .writes: call.fail(.outcomeUnknown(call, "was sent, but the client was closed", fault))
            }
        }
        for call in waiting { call.fail(fault) }
        self = CallTable()
    }
}
