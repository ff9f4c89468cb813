import NIOCore
import Synchronization

/// The way from tasks, on any thread, to the connection on its event loop.
///
/// Whatever tasks append until the loop gets to it is handed over in one piece: one wake-up of the loop, and one write
/// to the socket, for a burst of calls.
final class CallQueue: Sendable {
    enum Entry: Sendable {
        /// The connection is to be made; the daemon's answer, or the first fault, goes to the continuation.
        case opening(CheckedContinuation<Void, any Error>, deadline: NIODeadline)
        case openingCancelled
        case call(Call)
        case cancellation(id: Int)
        case closing(CheckedContinuation<Void, Never>?)
    }

    private let entries = Mutex<[Entry]>([])
    private let connection: NIOLoopBoundBox<Connection>

    init(connection: sending Connection) {
        let eventLoop = connection.eventLoop
        self.connection = NIOLoopBoundBox.makeBoxSendingValue(connection, eventLoop: eventLoop)
    }

    func append(_ entry: Entry) {
        let isFirst = entries.withLock { entries in
            entries.append(entry)
            return entries.count == 1
        }
        guard isFirst else { return }
        connection.eventLoop.execute { self.connection.value.take(self.drain()) }
    }

    private func drain() -> [Entry] {
        entries.withLock { entries in
            let all = entries
            entries = []
            return all
        }
    }
}
