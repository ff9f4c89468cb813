import CLinux
import Glibc

/// Is told where a loop's turns begin and end. Called on the loop's thread.
package protocol TurnHandler: AnyObject {
    /// Somebody has called ``Waker/wake()`` since the last call: first thing in a turn.
    func woken()

    /// Every stream that had something to read has been served; the outputs have not been written yet. The moment to
    /// hand over what the turn has gathered.
    func turnDidRead()

    /// The turn is over: outputs are written, closed streams closed. The moment to let go of what should not be held
    /// during a sleep. Output that is appended here is written at the end of a next turn, which then follows at once.
    func turnWillEnd()
}

/// Serves sockets, timers and calls from other threads in turns, on one thread.
///
/// A turn is
/// 1. sleep until epoll has something to report, a timer is due or a ``Waker`` is called, having looked out for a moment
///    where something is likely to come at once (``Lookout``); no sleep if a stream has asked to go on,
/// 2. ``TurnHandler/woken()`` if the waker was called, then the timers that are due,
/// 3. each listener and each readable stream once, with one read(2) each; after them the streams that had asked to go
///    on (``Stream/continueNextTurn()``),
/// 4. ``TurnHandler/turnDidRead()``,
/// 5. the output of each stream that has any, with one write(2) each,
/// 6. closing what is to be closed,
/// 7. ``TurnHandler/turnWillEnd()``.
///
/// So what arrives together is executed together, what one turn has to say to a peer goes out at once, and whoever
/// batches or holds things open knows the edges.
///
/// A loop, its streams, listeners and timers belong to one thread: the one that makes the loop and calls
/// ``run(_:)``. Nothing here is Sendable but the ``waker``. A descriptor gets to another loop through a queue of the
/// caller's own and that loop's waker.
///
/// **Re-entrance.** Handlers may call anything from anywhere: every call only takes a note, which the loop acts upon
/// when that step comes. In particular a descriptor is closed in step 6 and at no other time. Until then its number
/// cannot be given to a new connection, and so an event that this turn still has in hand never meets the wrong stream.
package final class EventLoop {
    /// Calls the loop from any thread.
    package let waker: Waker

    /// The time since the machine was started (CLOCK_MONOTONIC), as it was when this turn began.
    @exclusivity(unchecked) package private(set) var now: Duration

    /// How many received bytes the loop's streams keep because their handlers have not consumed them yet.
    @exclusivity(unchecked) package internal(set) var bufferedInputBytes = 0

    /// How many bytes the loop's streams have still to write.
    @exclusivity(unchecked) package internal(set) var pendingOutputBytes = 0

    /// Where every stream's bytes are received, so that streams need no memory of their own while they are idle.
    let receiveBuffer: UnsafeMutableRawBufferPointer

    /// More than a Unix socket holds by default (208 KiB), so that one read nearly always takes all there is.
    private static let receiveBufferBytes = 256 * 1024

    /// How many descriptors are served in one turn at most.
    private static let eventsPerTurn = 1024

    var timers = TimerHeap()
    private let epoll: Epoll
    private var lookout = Lookout()
    private var isStopping = false

    private enum Source {
        case stream(Stream)
        case listener(Listener)
    }

    /// What is watched, indexed by descriptor. Keeps streams and listeners alive until they are closed.
    @exclusivity(unchecked) private var sources: [Source?] = []

    // The streams that want something of the next turns, and what is to be closed in this one.
    //
    // Exclusive access to the properties that every event needs is not checked at run time: no access to them encloses
    // a call of a handler, and the checks took a twentieth of an echo server's time.
    @exclusivity(unchecked) private var continuing: [Stream] = []
    @exclusivity(unchecked) private var flushing: [Stream] = []
    @exclusivity(unchecked) private var closing: [Source] = []

    package init() throws(SystemCallError) {
        epoll = try Epoll(capacity: Self.eventsPerTurn)
        waker = try Waker()
        try epoll.watchEdges(of: waker.eventDescriptor)
        receiveBuffer = .allocate(byteCount: Self.receiveBufferBytes, alignment: 64)
        now = Self.readClock()
    }

    deinit {
        receiveBuffer.deallocate()
    }

    /// Takes turns until ``stop()``; then closes every stream and listener and forgets the timers.
    ///
    /// A loop runs once. One that never runs keeps its streams for ever.
    package func run(_ handler: any TurnHandler) {
        while !isStopping { turn(handler) }
        for case .some(let source) in sources {
            switch source {
            case .stream(let stream): stream.close()
            case .listener(let listener): listener.close()
            }
        }
        close()
        // Streams and timers hold their loop. (What a timer holds may cancel others when it is let go, hence not while
        // they are being removed.)
        continuing.removeAll()
        flushing.removeAll()
        _ = timers.removeAll()
    }

    /// Has ``run(_:)`` return after the present turn, outputs written as far as their peers take them.
    package func stop() {
        isStopping = true
    }

    /// One turn, for ``run(_:)`` and for tests.
    func turn(_ handler: any TurnHandler) {
        let reported = sleep()
        if waker.takeCall() { handler.woken() }
        fireTimers()
        // Those that ask while this turn reads have had their share of it.
        let continuingCount = continuing.count
        serve(reported)
        serveContinuing(continuingCount)
        handler.turnDidRead()
        flush()
        close()
        handler.turnWillEnd()
    }
}

// MARK: - The steps of a turn

extension EventLoop {
    private func sleep() -> Int {
        var milliseconds = sleepMilliseconds()
        if milliseconds != 0, !waker.prepareToSleep() { milliseconds = 0 }
        let reported = milliseconds == 0 ? epoll.wait(milliseconds: 0) : wait(milliseconds: milliseconds)
        now = Self.readClock()
        return reported
    }

    private func wait(milliseconds: CInt) -> Int {
        lookout.wait {
            let reported = epoll.wait(milliseconds: 0)
            return reported > 0 ? reported : nil
        } sleep: {
            epoll.wait(milliseconds: milliseconds)
        }
    }

    /// How long the loop may sleep: -1 is for ever.
    private func sleepMilliseconds() -> CInt {
        guard continuing.isEmpty, flushing.isEmpty, closing.isEmpty else { return 0 }
        guard let deadline = timers.earliestDeadline else { return -1 }
        // Not `now`: the turn that ends may have been a long one.
        let (seconds, attoseconds) = (deadline - Self.readClock()).components
        let attosecondsPerMillisecond: Int64 = 1_000_000_000_000_000
        // Rounded up, lest the last fraction of a millisecond be spent spinning. A day will do for the longest.
        let milliseconds =
            min(seconds, 86_400) * 1000 + (attoseconds + attosecondsPerMillisecond - 1) / attosecondsPerMillisecond
        return CInt(max(milliseconds, 0))
    }

    private static func readClock() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Duration(
            secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000)
    }

    private func fireTimers() {
        let ticket = timers.nextTicket
        while let timer = timers.popDue(at: now, before: ticket) { timer.fire() }
    }

    private func serve(_ reported: Int) {
        for index in 0..<reported {
            let (descriptor, readiness) = epoll[index]
            // Nothing is found for the waker's eventfd, which is there to end the sleep.
            guard Int(descriptor) < sources.count else { continue }
            switch sources[Int(descriptor)] {
            case .stream(let stream): stream.serve(readiness)
            case .listener(let listener): listener.accept()
            case nil: break
            }
        }
    }

    private func serveContinuing(_ count: Int) {
        for index in 0..<count { continuing[index].goOn() }
        continuing.removeFirst(count)
    }

    private func flush() {
        // Output that comes of flushing stands behind these and waits for the next turn.
        let count = flushing.count
        for index in 0..<count { flushing[index].flush() }
        flushing.removeFirst(count)
    }

    private func close() {
        // Being closed, a stream's handler may close others.
        while let source = closing.popLast() {
            switch source {
            case .stream(let stream):
                sources[Int(stream.descriptor)] = nil
                stream.finishClosing()
            case .listener(let listener):
                sources[Int(listener.descriptor)] = nil
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
        while sources.count <= index { sources.append(nil) }
        sources[index] = source
    }

    func watch(_ descriptor: CInt, for new: Readiness?, insteadOf old: Readiness?) throws(SystemCallError) {
        try epoll.watch(descriptor, for: new, insteadOf: old)
    }

    func continueNextTurn(_ stream: Stream) {
        continuing.append(stream)
    }

    func flushThisTurn(_ stream: Stream) {
        flushing.append(stream)
    }

    func closeThisTurn(_ stream: Stream) {
        closing.append(.stream(stream))
    }

    func closeThisTurn(_ listener: Listener) {
        closing.append(.listener(listener))
    }
}
