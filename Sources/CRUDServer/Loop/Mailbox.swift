import CRUDEventLoop
import CRUDModel
import CRUDStorage
import CRUDThreads
import Synchronization

/// Messages to an event loop from other threads.
final class Mailbox: Sendable {
    enum Message: Sendable {
        /// A connection for this loop to serve.
        case connection(CInt)
        /// A backend is done with an item.
        case completed(WorkItem)
        /// The result of a read has been made.
        case decoded(LongResult)
        /// Let the requests of these collections wait; resolved once nothing more of them goes to their backends, and
        /// what the loop was reading from the children of these backends itself is done. The reply names the backends,
        /// whose queues may still have requests of these collections.
        case quiesce(QuiescedCollections, OneShot<[Backend]>)
        /// Follow another configuration, and start what has waited for it; resolved once that is done.
        case serve(Service, OneShot<Bool>)
        /// Serve what was quiesced from where it is now; resolved once that is done.
        case serveQuiesced(OneShot<Bool>)
        /// The outcome of a call that another thread has executed for the loop, by its number.
        case delegated(UInt64, Result<[UInt8], CRUDError>)
        /// Tell what the loop has measured.
        case measure(OneShot<LoopMeasurement>)
        /// Describe the sessions.
        case describeSessions(OneShot<[SessionDescription]>)
        /// Close the session with this number; resolved with whether the loop has it.
        case closeSession(Int, OneShot<Bool>)
        /// Collections that requests of the loop follow have changed, or are there no more.
        case changed
        /// Accept nobody any more, finish what is in flight, and stop.
        case drain
    }

    private struct State {
        var messages: [Message] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let waker: Waker

    init(waker: Waker) {
        self.waker = waker
    }

    /// Leaves a message; callable on any thread.
    func post(_ message: Message) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.messages.append(message) }
            return state.isClosed
        }
        if isClosed { message.drop() } else { waker.wake() }
    }

    /// All messages that have been left, in order.
    func take() -> [Message] {
        state.withLock { state in
            let taken = state.messages
            state.messages.removeAll()
            return taken
        }
    }

    /// The loop has ended: nobody takes messages any more.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            return state.messages
        }
        for message in left { message.drop() }
    }
}

extension Mailbox.Message {
    /// Nobody is there to act upon it, and nothing is left to be done; whoever waits for that may continue.
    fileprivate func drop() {
        switch self {
        case .quiesce(_, let isDone): isDone.resolve([])
        case .serve(_, let isDone), .serveQuiesced(let isDone): isDone.resolve(true)
        case .measure(let measurement): measurement.resolve(LoopMeasurement())
        case .describeSessions(let descriptions): descriptions.resolve([])
        case .closeSession(_, let isClosed): isClosed.resolve(false)
        case .connection, .completed, .decoded, .delegated, .changed, .drain: break
        }
    }
}
