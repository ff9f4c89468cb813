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

    typealias WriteParameters = (inout FrameWriter) -> Void
    typealias ReadResult = (inout FrameReader) throws(FrameFault) -> Void

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - parameters: writes the members of `params`.
    ///   - result: reads the members of the result; not called where the call fails.
    func call(
        _ method: StaticString, _ parameters: WriteParameters, _ result: ReadResult
    ) throws(Fault) {
        try gate.withLock { _ throws(Fault) in try call(&state, method, parameters, result) }
    }

    /// Makes a call unless another is under way; false if there is one.
    func callIfIdle(
        _ method: StaticString, _ parameters: WriteParameters, _ result: ReadResult
    ) throws(Fault) -> Bool {
        try gate.withLockIfAvailable { _ throws(Fault) in
            try call(&state, method, parameters, result)
            return true
        } ?? false
    }

    private func call(
        _ state: inout State, _ method: StaticString, _ parameters: WriteParameters, _ result: ReadResult
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
        let frame: UnsafeBufferPointer<UInt8>
        do throws(FramedSocket.Fault) {
            frame = try state.socket.receive(until: deadline)
        } catch {
            throw .lost(Self.loss(error), wasSent: true)
        }
        state.reader.begin(frame)
        let failure: PluginFailure?
        do throws(FrameFault) {
            failure = try Self.read(&state.reader, number: state.number, result)
        } catch {
            throw .lost(.garbage(error.description), wasSent: true)
        }
        if let failure { throw .answered(failure) }
    }

    /// Reads a reply; answers the failure that it tells of.
    private static func read(
        _ reader: inout FrameReader, number: Int, _ result: ReadResult
    ) throws(FrameFault) -> PluginFailure? {
        var found: Int?
        var hasResult = false
        var failure: PluginFailure?
        try reader.object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "id") {
                found = try reader.count()
            } else if reader.isKey(key, "result"), !hasResult {
                hasResult = true
                try result(&reader)
            } else if reader.isKey(key, "error") {
                failure = try reader.failure()
            } else {
                try reader.skip()
            }
        }
        try reader.expectEnd()
        guard found == number else { throw FrameFault("a reply to another request than \(number)") }
        guard hasResult != (failure != nil) else { throw FrameFault("a reply with not one of result and error") }
        return failure
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
