import CRUDPluginHost
import CRUDThreads
import Glibc
import Synchronization

/// The sending half of a channel: its thread sends replies, any thread of the plugin notifications.
final class ChannelSender: @unchecked Sendable {
    // @unchecked: `gate` guards `event` and the order of frames; `thread` is set once, before the plugin is called.
    private let gate = Mutex(())
    private let descriptor: CInt
    private var event = FrameWriter()
    private var thread: pthread_t?
    private let isExecuting = Atomic(false)
    /// When the daemon was last told of progress, in milliseconds of ``MonotonicTime``.
    private let lastProgress = Atomic<Int64>(0)

    /// The daemon is told of progress once in so many milliseconds.
    private static let progressInterval: Int64 = 100

    /// - Parameter descriptor: stays open as long as the object.
    init(_ descriptor: CInt) {
        self.descriptor = descriptor
    }

    /// The calling thread is the channel's.
    func attachThread() { thread = pthread_self() }

    var isThisThreads: Bool { thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }

    /// Executes a request.
    func execute<Result>(_ body: () -> Result) -> Result {
        isExecuting.store(true, ordering: .relaxed)
        defer { isExecuting.store(false, ordering: .relaxed) }
        return body()
    }

    /// Sends a frame that is complete.
    func send(_ frame: inout FrameWriter) throws(ChannelError) {
        try gate.withLock { _ throws(ChannelError) in
            try FramedSocket.send(&frame, on: descriptor, until: nil)
        }
    }

    /// Tells the daemon that the request that is being executed advances, unless it has just been told.
    func sendProgress(done: UInt64, total: UInt64) {
        guard isExecuting.load(ordering: .relaxed) else { return }
        let now = MonotonicTime.now.milliseconds
        guard now - lastProgress.load(ordering: .relaxed) >= Self.progressInterval else { return }
        lastProgress.store(now, ordering: .relaxed)
        sendEvent { $0.progress(done: done, total: total) }
    }

    /// Tells the daemon that the storage was lost, or is back.
    func sendState(isUp: Bool, reason: UnsafeRawBufferPointer) {
        sendEvent { $0.state(isUp: isUp, reason: reason) }
    }

    /// Tells the daemon that more changes of a collection can be read, or that it may have been made.
    func sendChanged(_ name: UnsafeRawBufferPointer) {
        sendEvent { $0.changed(name) }
    }

    private func sendEvent(_ write: (inout FrameWriter) -> Void) {
        gate.withLock { _ in
            write(&event)
            // The end of the daemon is noticed by the thread that receives.
            try? FramedSocket.send(&event, on: descriptor, until: nil)
        }
    }
}
