import NIOCore
import Synchronization

/// Passes entries from tasks, on any thread, to the connection on its event loop.
///
/// The loop takes all entries that have been appended since it was woken: a burst of calls costs one wake-up of the
/// loop and one write to the socket.
final class CallQueue: Sendable {
    enum Entry: Sendable {
        /// Connect; the continuation gets the daemon's reply or the first error.
        case opening(CheckedContinuation<Void, any Error>, deadline: NIODeadline)
        case openingCancelled
        case call(PendingCall)
        case cancellation(id: Int)
        case closing(CheckedContinuation<Void, Never>?)
    }

    private let entries = Mutex<[Entry]>([])
    private let connection: NIOLoopBoundBox<DaemonConnection>

    init(connection: sending DaemonConnection) {
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
