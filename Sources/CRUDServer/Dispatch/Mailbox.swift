import CRUDEventLoop
import CRUDPluginHost
import Synchronization

/// Messages to an event loop from other threads.
final class Mailbox: Sendable {
    enum Message: Sendable {
        /// A connection for this loop to serve.
        case connection(CInt)
        /// A backend has carried out a batch.
        case completed(WorkItem)
        /// Accept nobody any more, finish what is under way, and stop.
        case drain
    }

    private let messages = Mutex<[Message]>([])
    private let waker: Waker

    init(waker: Waker) {
        self.waker = waker
    }

    /// Leaves a message; callable on any thread.
    func post(_ message: Message) {
        messages.withLock { $0.append(message) }
        waker.wake()
    }

    /// All messages that have been left, in order.
    func take() -> [Message] {
        messages.withLock { messages in
            let taken = messages
            messages.removeAll()
            return taken
        }
    }
}
