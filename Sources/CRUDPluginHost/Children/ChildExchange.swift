import CRUDPluginABI
import CRUDThreads

/// Requests and their replies on a channel, from the daemon's end; used by one thread at a time.
struct ChildExchange: ~Copyable {
    private var socket: FramedSocket
    private var request = FrameWriter()
    private var reader = FrameReader()
    private var number = 0
    private let callTimeout: Duration
    private let host: HostReference

    /// - Parameter descriptor: closed with the value.
    init(owning descriptor: CInt, limits: ChildCommand.Limits, host: HostReference) {
        socket = FramedSocket(owning: descriptor, maximumFrameBytes: limits.frameBytes)
        socket.setTimeout(limits.callTimeout)
        callTimeout = limits.callTimeout
        self.host = host
    }

    /// Makes a call.
    mutating func execute(
        _ call: ChildCall, _ parameters: (inout FrameWriter) -> Void, _ result: ChildReply.ReadResult
    ) throws(ChildCall.Failure) {
        number += 1
        request.request(call.method, number: number, parameters)
        let deadline = MonotonicTime.now + callTimeout
        do throws(ChannelError) {
            try socket.send(&request, until: deadline)
        } catch {
            throw .lost(error, wasSent: false)
        }
        let failure: PluginFailure?
        do throws(ChannelError) {
            failure = try receiveReply(to: call, until: deadline, result)
            while socket.hasMore { try receiveNotification(until: deadline) }
        } catch {
            throw .lost(error, wasSent: true)
        }
        if let failure { throw .replied(failure) }
    }

    // MARK: Replies

    /// Whether the rest of a reply is wanted.
    private enum Interest {
        case wanted
        /// The receiver of the records has enough.
        case satisfied
        /// The caller has interrupted the call.
        case interrupted
    }

    /// Receives a reply, all frames of it; returns the failure that it tells of.
    private mutating func receiveReply(
        to call: ChildCall, until end: Duration, _ result: ChildReply.ReadResult
    ) throws(ChannelError) -> PluginFailure? {
        var deadline = end
        var interest = Interest.wanted
        // What a write came to has to be known in any case.
        var isRead: Bool { interest == .wanted || call.purpose == .writing }
        while true {
            if interest == .wanted, let interrupt = call.interrupt,
                try interrupt.isRaised(whileWaitingFor: socket, until: deadline)
            {
                interest = .interrupted
                try sendInterrupt(until: deadline)
            }
            // What comes keeps the socket from timing out; it does not keep a call going that nobody waits for.
            if interest != .wanted, MonotonicTime.now >= deadline { throw .timedOut }
            switch try receive(replyTo: number, isWanted: isRead, until: deadline, result) {
            case .progress(let done, let total):
                // A child that does not heed an interrupt has no more than the usual time.
                if interest == .wanted { deadline = MonotonicTime.now + callTimeout }
                host.progress(done: done, total: total)
            case .state(let isUp, let reason): host.state(isUp: isUp, reason: reason)
            case .changed(let name): host.changed(name)
            case .reply(let reply) where reply.hasMore:
                guard interest == .wanted else { continue }
                deadline = MonotonicTime.now + callTimeout
                guard !reply.isWanted else { continue }
                interest = .satisfied
                try sendInterrupt(until: deadline)
            case .reply(let reply):
                switch interest {
                case .interrupted where !isRead: return reply.failure ?? .interrupted
                case .satisfied where reply.failure?.status == CRUDD_INTERRUPTED: return nil
                default: return reply.failure
                }
            }
        }
    }

    /// Tells the child that the rest of the reply is of no use.
    private mutating func sendInterrupt(until deadline: Duration) throws(ChannelError) {
        request.interrupt()
        try socket.send(&request, until: deadline)
    }

    private mutating func receive(
        replyTo number: Int?, isWanted: Bool = true, until deadline: Duration,
        _ result: ChildReply.ReadResult = { (_) throws(ProtocolViolation) in false }
    ) throws(ChannelError) -> ChildMessage {
        let frame = try socket.receive(until: deadline)
        do throws(ProtocolViolation) {
            try reader.begin(frame)
            return try reader.message(replyTo: number, isWanted: isWanted, result)
        } catch {
            throw ChannelError(error)
        }
    }

    // MARK: Notifications

    /// - Returns: whether there was one.
    mutating func receiveNotificationIfAvailable() throws(ChannelError) -> Bool {
        guard socket.isReadable(within: .zero) else { return false }
        try receiveNotification(until: MonotonicTime.now + callTimeout)
        return true
    }

    private mutating func receiveNotification(until deadline: Duration) throws(ChannelError) {
        switch try receive(replyTo: nil, until: deadline) {
        // It belongs to a call that has ended meanwhile.
        case .progress: break
        case .state(let isUp, let reason): host.state(isUp: isUp, reason: reason)
        case .changed(let name): host.changed(name)
        case .reply: throw .violation("a reply that nobody has asked for")
        }
    }
}

extension PluginFailure {
    /// The caller has interrupted the call.
    fileprivate static let interrupted = PluginFailure(status: CRUDD_INTERRUPTED, message: "interrupted")
}
