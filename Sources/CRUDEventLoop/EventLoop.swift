import CRUDThreads
import Glibc

/// Is told where a loop's iterations begin and end. Called on the loop's thread.
package protocol IterationHandler: AnyObject {
    /// ``Waker/wake()`` has been called since the last call of this; the first step of an iteration.
    func woken()

    /// Every stream that had something to read has been served; no output has been written yet. The moment to submit
    /// what the iteration has batched.
    func inputWasRead()

    /// Outputs are written, closed streams are closed. The moment to release what must not be held during a sleep.
    /// Output that is appended here is written at the end of the next iteration, which then follows at once.
    func iterationWillEnd()
}

/// Serves sockets, timers and calls from other threads on one thread, in iterations.
///
/// An iteration is
/// 1. sleep until epoll has something to report, a timer is due or a ``Waker`` is called, after adaptive spinning
///    (``AdaptiveSpin``); no sleep if a stream has asked for the next iteration,
/// 2. ``IterationHandler/woken()`` if the waker was called, then the timers that are due,
/// 3. each listener and each readable stream once, with one read(2) each; after them the streams that have asked for
///    this iteration (``Stream/resumeNextIteration()``),
/// 4. ``IterationHandler/inputWasRead()``,
/// 5. the output of each stream that has any, with one write(2) each,
/// 6. closing what is to be closed,
/// 7. ``IterationHandler/iterationWillEnd()``.
///
/// So requests that arrive together are executed together, each peer gets the replies of an iteration in one write, and
/// a handler that batches requests or holds snapshots knows when to submit and to release them.
///
/// A loop, its streams, listeners and timers belong to one thread: the one that makes the loop and calls
/// ``run(_:)``. Only the ``waker`` is Sendable. A descriptor is passed to another loop through a queue of the caller's
/// own and that loop's waker.
///
/// **Re-entrancy.** Handlers may call anything at any time: every call is only recorded, and the loop acts on it in the
/// step concerned. In particular a descriptor is closed in step 6 and at no other time. Until then its number cannot
/// be given to a new connection, so that an event that this iteration has still to handle never reaches another stream.
package final class EventLoop {
    /// Calls the loop from any thread.
    package let waker: Waker

    /// Where every stream's bytes are received, so that streams need no memory of their own while they are idle.
    let receiveBuffer: UnsafeMutableRawBufferPointer

    /// More than a Unix socket buffers by default (208 KiB), so that one read nearly always takes all there is.
    private static let receiveBufferBytes = 256 * 1024

    /// How many descriptors are served in one iteration at most.
    private static let maximumEvents = 1024

    var timers = TimerHeap()
    private let epoll: Epoll
    private var spin = AdaptiveSpin()
    private var isStopping = false

    private enum Source {
        case stream(Stream)
        case listener(Listener)
    }

    /// What every event reads or changes.
    private struct HotState {
        var now: Duration
        var nowNanoseconds: Int64
        /// What is watched, indexed by descriptor. Keeps streams and listeners alive until they are closed.
        var sources: [Source?] = []
        // The streams that have asked for the next iteration, those with output, and what this iteration closes.
        var resuming: [Stream] = []
        var flushing: [Stream] = []
        var closing: [Source] = []

        init(nowNanoseconds: Int64) {
            self.nowNanoseconds = nowNanoseconds
            now = .nanoseconds(nowNanoseconds)
        }
    }

    // Exclusive access is not checked at run time: no access encloses a call of a handler, and the checks took a
    // twentieth of an echo server's time.
    @exclusivity(unchecked) private var hot = HotState(nowNanoseconds: MonotonicTime.nanoseconds)

    /// For the outputs of all streams.
    @exclusivity(unchecked) var spareMemory = SpareMemory()

    package init() throws(SystemCallError) {
        epoll = try Epoll(capacity: Self.maximumEvents)
        waker = try Waker()
        try epoll.watchEdges(of: waker.eventDescriptor)
        receiveBuffer = .allocate(byteCount: Self.receiveBufferBytes, alignment: 64)
    }

    deinit {
        receiveBuffer.deallocate()
    }

    /// The time since the machine was started (CLOCK_MONOTONIC), as it was when this iteration began.
    package var now: Duration { hot.now }

    /// The same as a number.
    package var nowNanoseconds: Int64 { hot.nowNanoseconds }

    /// Iterates until ``stop()``; then closes every stream and listener and forgets the timers.
    ///
    /// A loop runs once. One that never runs keeps its streams for ever.
    package func run(_ handler: any IterationHandler) {
        while !isStopping { iterate(handler) }
        for case .some(let source) in hot.sources {
            switch source {
            case .stream(let stream): stream.close()
            case .listener(let listener): listener.close()
            }
        }
        close()
        // Streams and timers refer to their loop. (Releasing a timer's closure may cancel other timers, hence it must
        // not happen while timers are being removed.)
        hot.resuming.removeAll()
        hot.flushing.removeAll()
        _ = timers.removeAll()
    }

    /// Makes ``run(_:)`` return after the present iteration, outputs written as far as their peers take them.
    package func stop() {
        isStopping = true
    }

    /// One iteration, for ``run(_:)`` and for tests.
    func iterate(_ handler: any IterationHandler) {
        let reported = sleep()
        if waker.takeCall() { handler.woken() }
        fireTimers()
        // Streams that ask during this iteration's reading wait for the next one.
        let resumingCount = hot.resuming.count
        serve(reported)
        resume(resumingCount)
        handler.inputWasRead()
        flush()
        close()
        handler.iterationWillEnd()
    }
}

// MARK: - The steps of an iteration

extension EventLoop {
    private func sleep() -> Int {
        var milliseconds = sleepMilliseconds()
        if milliseconds != 0, !waker.prepareToSleep() { milliseconds = 0 }
        let reported = milliseconds == 0 ? epoll.wait(milliseconds: 0) : wait(milliseconds: milliseconds)
        let now = MonotonicTime.nanoseconds
        hot.nowNanoseconds = now
        hot.now = .nanoseconds(now)
        return reported
    }

    private func wait(milliseconds: CInt) -> Int {
        spin.wait {
            let reported = epoll.wait(milliseconds: 0)
            return reported > 0 ? reported : nil
        } sleep: {
            epoll.wait(milliseconds: milliseconds)
        }
    }

    /// How long the loop may sleep: -1 is for ever.
    private func sleepMilliseconds() -> CInt {
        guard hot.resuming.isEmpty, hot.flushing.isEmpty, hot.closing.isEmpty else { return 0 }
        guard let deadline = timers.earliestDeadline else { return -1 }
        // Not `now`: the iteration that ends may have been a long one.
        let (seconds, attoseconds) = (deadline - MonotonicTime.now).components
        let attosecondsPerMillisecond: Int64 = 1_000_000_000_000_000
        // Rounded up, lest the last fraction of a millisecond be spent in a busy loop. A day will do for the longest.
        let milliseconds =
            min(seconds, 86_400) * 1000 + (attoseconds + attosecondsPerMillisecond - 1) / attosecondsPerMillisecond
        return CInt(max(milliseconds, 0))
    }

    private func fireTimers() {
        let ticket = timers.nextTicket
        while let timer = timers.popDue(at: now, before: ticket) { timer.fire() }
    }

    private func serve(_ reported: Int) {
        for index in 0..<reported {
            let (descriptor, readiness) = epoll[index]
            // There is no source for the waker's eventfd: its event only ends the sleep.
            guard Int(descriptor) < hot.sources.count else { continue }
            switch hot.sources[Int(descriptor)] {
            case .stream(let stream): stream.serve(readiness)
            case .listener(let listener): listener.accept()
            case nil: break
            }
        }
    }

    private func resume(_ count: Int) {
        for index in 0..<count { hot.resuming[index].deliverAgain() }
        hot.resuming.removeFirst(count)
    }

    private func flush() {
        // Streams that get output because of a flush are behind these and wait for the next iteration.
        let count = hot.flushing.count
        for index in 0..<count { hot.flushing[index].flush() }
        hot.flushing.removeFirst(count)
    }

    private func close() {
        // A handler that is told of the end of its stream may close other streams.
        while let source = hot.closing.popLast() {
            switch source {
            case .stream(let stream):
                hot.sources[Int(stream.descriptor)] = nil
                stream.finishClosing()
            case .listener(let listener):
                hot.sources[Int(listener.descriptor)] = nil
                listener.finishClosing()
            }
        }
    }
}

// MARK: - What streams and listeners ask for

extension EventLoop {
    func add(_ stream: Stream) throws(SystemCallError) {
        try add(.stream(stream), stream.descriptor)
    }

    func add(_ listener: Listener) throws(SystemCallError) {
        try add(.listener(listener), listener.descriptor)
    }

    private func add(_ source: Source, _ descriptor: CInt) throws(SystemCallError) {
        try epoll.watch(descriptor, for: .readable, insteadOf: nil)
        let index = Int(descriptor)
        while hot.sources.count <= index { hot.sources.append(nil) }
        hot.sources[index] = source
    }

    func watch(_ descriptor: CInt, for new: Readiness?, insteadOf old: Readiness?) throws(SystemCallError) {
        try epoll.watch(descriptor, for: new, insteadOf: old)
    }

    func resumeNextIteration(_ stream: Stream) {
        hot.resuming.append(stream)
    }

    func flushThisIteration(_ stream: Stream) {
        hot.flushing.append(stream)
    }

    func closeThisIteration(_ stream: Stream) {
        hot.closing.append(.stream(stream))
    }

    func closeThisIteration(_ listener: Listener) {
        hot.closing.append(.listener(listener))
    }
}
