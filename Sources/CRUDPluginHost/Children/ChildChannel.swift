import CRUDPluginABI
import Synchronization

/// The daemon's end of a channel: one request, then its reply, one after the other.
final class ChildChannel: @unchecked Sendable {
    // @unchecked: `state` is used by whoever holds `gate`. It does not stand in the mutex, whose contents what a caller
    // passes in may not touch.
    private let gate = Mutex(())
    private var state: State
    private let callTimeout: Duration
    private let descriptor: CInt

    private struct State: ~Copyable {
        var socket: FramedSocket
        var request = FrameWriter()
        var reader = FrameReader()
        var number = 0
    }

    /// Why a call has not been answered.
    enum Fault: Error {
        /// The child has answered that it failed.
        case answered(PluginFailure)
        /// The child is not to be spoken to any more: it has gone, hangs or talks nonsense.
        ///
        /// - Parameter wasSent: whether it may have carried out what it was asked.
        case lost(Loss, wasSent: Bool)
    }

    /// What is wrong with a child.
    enum Loss: Error {
        case ended
        case overdue
        case garbage(String)
    }

    init(owning descriptor: CInt, limits: ChildCommand.Limits) {
        let socket = FramedSocket(owning: descriptor, maximumFrameBytes: limits.frameBytes)
        socket.setPatience(limits.callTimeout)
        callTimeout = limits.callTimeout
        self.descriptor = descriptor
        state = State(socket: socket)
    }

    /// Tells the child that nothing more will come. A call under way ends.
    func shutDown() {
        // Not under the lock, which a call holds until it is answered.
        FramedSocket.shutDown(descriptor)
    }

    /// Writes the members of `params`.
    typealias WriteParameters = (inout FrameWriter) -> Void
    /// Reads a result, or one part of it after the other; answers whether further parts are of use.
    typealias ReadResult = (inout FrameReader) throws(FrameFault) -> Bool

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - result: not called where the call fails at once.
    ///   - interrupt: asked every few milliseconds while nothing comes.
    func call(
        _ method: StaticString, interrupt: Interrupt?, _ parameters: WriteParameters, _ result: ReadResult
    ) throws(Fault) {
        try gate.withLock { _ throws(Fault) in try call(&state, method, parameters, interrupt, result) }
    }

    /// Makes a call unless another is under way; false if there is one.
    func callIfIdle(
        _ method: StaticString, interrupt: Interrupt?, _ parameters: WriteParameters, _ result: ReadResult
    ) throws(Fault) -> Bool {
        try gate.withLockIfAvailable { _ throws(Fault) in
            try call(&state, method, parameters, interrupt, result)
            return true
        } ?? false
    }

    private func call(
        _ state: inout State, _ method: StaticString, _ parameters: WriteParameters, _ interrupt: Interrupt?,
        _ result: ReadResult
    ) throws(Fault) {
        state.number += 1
        state.request.begin()
        state.request.raw(#"{"id":"#)
        state.request.integer(state.number)
        state.request.raw(#","method":""#)
        state.request.raw(method)
        state.request.raw(#"","params":{"#)
        parameters(&state.request)
        state.request.raw("}}")
        state.request.end()
        let deadline = ContinuousClock.now + callTimeout
        do throws(FramedSocket.Fault) {
            try state.socket.send(state.request.bytes, until: deadline)
        } catch {
            throw .lost(Self.loss(error), wasSent: false)
        }
        let failure: PluginFailure?
        do throws(FramedSocket.Fault) {
            failure = try receive(&state, interrupt, result, until: deadline)
        } catch {
            throw .lost(Self.loss(error), wasSent: true)
        }
        if let failure { throw .answered(failure) }
    }

    // MARK: Replies

    /// What a frame of a reply tells beside the result.
    private struct Reply {
        var failure: PluginFailure?
        /// Whether further frames belong to the reply.
        var hasMore = false
        /// Whether they are of use.
        var isWanted = true
    }

    /// Receives a reply, all frames of it; answers the failure that it tells of.
    private func receive(
        _ state: inout State, _ interrupt: Interrupt?, _ result: ReadResult, until deadline: ContinuousClock.Instant
    ) throws(FramedSocket.Fault) -> PluginFailure? {
        var isWanted = true
        while true {
            if isWanted, let interrupt {
                isWanted = try !interrupt.isRaised(whileWaitingFor: state.socket, until: deadline)
                if !isWanted { try sendInterrupt(&state, until: deadline) }
            }
            state.reader.begin(try state.socket.receive(until: deadline))
            let reply: Reply
            do throws(FrameFault) {
                reply = try Self.read(&state.reader, number: state.number, isWanted: isWanted, result)
            } catch {
                throw .garbage(error.description)
            }
            guard reply.hasMore else {
                // It speaks only when it is asked.
                guard !state.socket.hasMore else { throw .garbage("something follows a frame") }
                return reply.failure
            }
            if isWanted, !reply.isWanted { try sendInterrupt(&state, until: deadline) }
            isWanted = isWanted && reply.isWanted
        }
    }

    /// Tells the child that the rest of the reply is of no use.
    private func sendInterrupt(_ state: inout State, until deadline: ContinuousClock.Instant) throws(FramedSocket.Fault)
    {
        state.request.begin()
        state.request.raw(#"{"method":"interrupt"}"#)
        state.request.end()
        try state.socket.send(state.request.bytes, until: deadline)
    }

    private static func read(
        _ reader: inout FrameReader, number: Int, isWanted: Bool, _ result: ReadResult
    ) throws(FrameFault) -> Reply {
        var reply = Reply()
        var found: Int?
        var hasResult = false
        try reader.object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "id") {
                found = try reader.count()
            } else if reader.isKey(key, "result"), !hasResult {
                hasResult = true
                if isWanted { reply.isWanted = try result(&reader) } else { try reader.skip() }
            } else if reader.isKey(key, "error") {
                reply.failure = try reader.failure()
            } else if reader.isKey(key, "more") {
                reply.hasMore = try reader.bool()
            } else {
                try reader.skip()
            }
        }
        try reader.expectEnd()
        guard found == number else { throw FrameFault("a reply to another request than \(number)") }
        guard hasResult != (reply.failure != nil), !(reply.hasMore && reply.failure != nil) else {
            throw FrameFault("a reply with not one of result and error")
        }
        return reply
    }

    private static func loss(_ fault: FramedSocket.Fault) -> Loss {
        switch fault {
        case .ended: .ended
        case .overdue: .overdue
        case .garbage(let reason): .garbage(reason)
        case .system(let code): .garbage("the channel failed with errno \(code)")
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

/// A caller's way of saying, while it waits, that it has lost interest.
struct Interrupt {
    private let function: crudd_interrupt
    private let context: UnsafeMutableRawPointer?

    /// - Parameter function: nil where nobody will.
    init?(_ function: crudd_interrupt?, _ context: UnsafeMutableRawPointer?) {
        guard let function else { return nil }
        self.function = function
        self.context = context
    }

    private static let tick = Duration.milliseconds(5)

    /// Whether it has; false once something has come.
    fileprivate func isRaised(
        whileWaitingFor socket: borrowing FramedSocket, until deadline: ContinuousClock.Instant
    ) throws(FramedSocket.Fault) -> Bool {
        while function(context) == 0 {
            if socket.isReadable(within: Self.tick) { return false }
            if ContinuousClock.now >= deadline { throw .overdue }
        }
        return true
    }
}
