import CRUDPluginABI
import CRUDThreads

/// A call of a child, apart from its parameters and its result.
struct ChildCall {
    let method: StaticString
    let purpose: Purpose
    var interrupt: Interrupt?

    /// What a call is for.
    enum Purpose {
        /// Nobody waits for it.
        case maintenance
        /// A call that somebody waits for comes after it.
        case preparation
        /// Somebody waits for it; it may be made beside other calls.
        case reading
        /// Somebody waits for it, and has to know whether it was executed.
        case writing
    }

    /// How a call ended without a result.
    enum Failure: Error {
        /// The child has replied that it failed.
        case replied(PluginFailure)
        /// The child can no longer be called.
        ///
        /// - Parameter wasSent: whether it may have executed the request.
        case lost(ChannelError, wasSent: Bool)
    }

    /// A caller's way of saying, while it waits, that nobody waits for the result any more.
    struct Interrupt {
        private let call: crudd_call

        /// - Parameter call: as the caller of the function table gave it; nil where it neither interrupts nor has a
        ///   deadline.
        init?(_ call: crudd_call) {
            guard call.interrupted != nil || call.deadline > 0 else { return nil }
            self.call = call
        }

        private static let interval = Duration.milliseconds(5)

        /// Waits until something has come; true once the caller has interrupted the call, or its deadline has passed.
        ///
        /// - Throws: ``ChannelError/timedOut`` at `deadline`, which is the channel's.
        func isRaised(
            whileWaitingFor socket: borrowing FramedSocket, until deadline: Duration
        ) throws(ChannelError) -> Bool {
            while !isRaised {
                if socket.isReadable(within: Self.interval) { return false }
                if MonotonicTime.now >= deadline { throw .timedOut }
            }
            return true
        }

        private var isRaised: Bool {
            if call.interrupted?(call.context) ?? 0 != 0 { return true }
            return call.deadline > 0 && CallContext.monotonicNanoseconds >= call.deadline
        }
    }
}
