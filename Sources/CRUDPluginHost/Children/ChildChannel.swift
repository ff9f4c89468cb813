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

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - result: not called where the call fails at once.
    ///   - interrupt: asked every few milliseconds while nothing comes.
    func call(
        _ method: StaticString, interrupt: Interrupt?, _ parameters: FrameWriter.WriteParameters,
        _ result: ChildReply.ReadResult
    ) throws(Fault) {
        try gate.withLock { _ throws(Fault) in try call(&state, method, parameters, interrupt, result) }
    }

    /// Makes a call unless another is under way; false if there is one.
    func callIfIdle(
        _ method: StaticString, interrupt: Interrupt?, _ parameters: FrameWriter.WriteParameters,
        _ result: ChildReply.ReadResult
    ) throws(Fault) -> Bool {
        try gate.withLockIfAvailable { _ throws(Fault) in
            try call(&state, method, parameters, interrupt, result)
            return true
        } ?? false
    }

    private func call(
        _ state: inout State, _ method: StaticString, _ parameters: FrameWriter.WriteParameters,
        _ interrupt: Interrupt?,
        _ result: ChildReply.ReadResult
    ) throws(Fault) {
        state.number += 1
        state.request.request(method, number: state.number, parameters)
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

    /// Receives a reply, all frames of it; answers the failure that it tells of.
    private func receive(
        _ state: inout State, _ interrupt: Interrupt?, _ result: ChildReply.ReadResult,
        until deadline: ContinuousClock.Instant
    ) throws(FramedSocket.Fault) -> PluginFailure? {
        var isWanted = true
        while true {
            if isWanted, let interrupt {
                isWanted = try !interrupt.isRaised(whileWaitingFor: state.socket, until: deadline)
                if !isWanted { try sendInterrupt(&state, until: deadline) }
            }
            state.reader.begin(try state.socket.receive(until: deadline))
            let reply: ChildReply
            do throws(FrameFault) {
                reply = try ChildReply(from: &state.reader, number: state.number, isWanted: isWanted, result)
            } catch {
                throw .garbage(error.description)
            }
            guard reply.hasMore else {
                // The child speaks only when it is asked.
                if state.socket.hasMore { throw .garbage("something follows a frame") }
                return reply.failure
            }
            if isWanted, !reply.isWanted { try sendInterrupt(&state, until: deadline) }
            isWanted = isWanted && reply.isWanted
        }
    }

    /// Tells the child that the rest of the reply is of no use.
    private func sendInterrupt(_ state: inout State, until deadline: ContinuousClock.Instant) throws(FramedSocket.Fault)
    {
        state.request.interrupt()
        try state.socket.send(state.request.bytes, until: deadline)
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
