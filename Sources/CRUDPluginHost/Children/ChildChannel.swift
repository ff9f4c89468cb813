import CRUDPluginABI
import CRUDThreads
import Synchronization

/// The daemon's end of a channel, as any thread may use it: calls are made one after the other.
final class ChildChannel: @unchecked Sendable {
    // @unchecked: `exchange` is used by whoever holds `gate`. It does not stand in the mutex, whose contents a caller's
    // closures could not use.
    private let gate = Mutex(())
    private var exchange: ChildExchange
    let descriptor: CInt

    init(owning descriptor: CInt, limits: ChildCommand.Limits, host: HostReference) {
        self.descriptor = descriptor
        exchange = ChildExchange(owning: descriptor, limits: limits, host: host)
    }

    /// Tells the child that nothing more will come. A call in progress ends.
    func shutDown() {
        // Without the gate, which a call holds until its reply has come.
        FramedSocket.shutDown(descriptor)
    }

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - parameters: writes the members of `params`.
    ///   - result: reads the result, one frame of it after the other.
    func call(
        _ call: ChildCall, _ parameters: (inout FrameWriter) -> Void, _ result: ChildReply.ReadResult
    ) throws(ChildCall.Failure) {
        try gate.withLock { _ throws(ChildCall.Failure) in try exchange.execute(call, parameters, result) }
    }

    /// Makes a call unless another one is in progress; false if there is one.
    func callIfIdle(
        _ call: ChildCall, _ parameters: (inout FrameWriter) -> Void, _ result: ChildReply.ReadResult
    ) throws(ChildCall.Failure) -> Bool {
        try gate.withLockIfAvailable { _ throws(ChildCall.Failure) in
            try exchange.execute(call, parameters, result)
            return true
        } ?? false
    }

    /// Receives a notification, if there is one and no call is in progress.
    ///
    /// - Returns: whether there was one.
    func receiveNotification() throws(ChannelError) -> Bool {
        try gate.withLockIfAvailable { _ throws(ChannelError) in try exchange.receiveNotificationIfAvailable() }
            ?? false
    }
}
