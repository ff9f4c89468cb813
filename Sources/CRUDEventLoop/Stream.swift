/// Serves one stream. Called on the loop's thread, never from within a call of the stream's own.
package protocol StreamHandler: AnyObject {
    /// Bytes have come in: those that were left over last time, and what has arrived since behind them.
    ///
    /// What is not consumed is kept and comes again, with more behind it: when more has arrived, in the next turn after
    /// ``Stream/continueNextTurn()``, or after ``Stream/resume()``.
    ///
    /// - Parameter bytes: not empty; gone when the call returns.
    /// - Returns: how many bytes, from the first one on, the handler has consumed.
    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int

    /// The peer has shut down its writing side, and all that it wrote has been delivered; what has not been consumed is
    /// dropped. The peer may still be reading: the stream stays open until the handler closes it or the peer is gone
    /// altogether.
    func reachedEnd(of stream: Stream)

    /// A paused stream has got rid of all its output: a handler that paused because its peer did not read may go on.
    func outputDrained(from stream: Stream)

    /// The stream is closed, for whatever reason; the last call for this stream.
    func closed(_ stream: Stream)
}

/// A connected socket on a loop: bytes in, handed to a ``StreamHandler``, and bytes out.
///
/// **Reading** goes into a buffer of the loop's, and what the handler leaves over is kept here. At most one read(2) is
/// made in a turn, and none while bytes are left that the handler could still consume (paused, or to be continued next
/// turn), so a stream keeps no more than one read beyond what its handler waits for.
///
/// **Writing** is appending to ``output``; the turn's end writes. A peer that does not read leaves bytes behind, which
/// are written when it does. They are the handler's to bound: it sees ``pendingOutputBytes`` and can ``pause()``.
///
/// **Ends.** A peer may shut down its writing side and still read: `reachedEnd(of:)`, then the handler's decision. A
/// peer that has closed altogether can only be told by writing (EPIPE) or by epoll (EPOLLHUP), while bytes that it
/// sent before may not have been read. Those are still delivered, in turns as ever, if need be after the handler has
/// resumed; only output is dropped, for nobody will read it. When they are through, `reachedEnd(of:)` comes and
/// `closed(_:)` at once behind it.
package final class Stream {
    package let loop: EventLoop

    /// For asking the kernel about the peer; reading, writing and closing are the stream's.
    package let descriptor: CInt

    /// Until the stream has closed: handlers usually hold their stream, and the circle has to end somewhere.
    var handler: (any StreamHandler)?

    enum Phase {
        case open
        /// To be closed as soon as the output is written; nothing is read any more.
        case finishing
        /// To be closed at the end of this turn; nothing is read or written any more.
        case closing
        case closed
    }
    var phase = Phase.open

    // What epoll watches for at present; nil if the descriptor is not registered. It is changed only when something
    // is reported that nobody wants, or wanted that is not watched for: pausing for a moment costs no system call.
    var interest: Readiness? = .readable

    /// epoll has said that both directions are shut: nobody reads what is written. It would say so for ever.
    package internal(set) var isHungUp = false

    // Reading. `kept` is what the handler has left over; `expectedBytes` is how much it is going to wait for.
    var hasEnded = false
    @exclusivity(unchecked) var kept = StreamBuffer()
    var expectedBytes = 0
    var isPaused = false
    /// On the loop's list of those that go on next turn.
    var isContinuing = false

    // Writing.
    @exclusivity(unchecked) @usableFromInline var pending = StreamBuffer()
    /// Somebody is appending at this moment; in place of Swift's own check of exclusive access, which costs too much
    /// here (see ``EventLoop``'s lists).
    @exclusivity(unchecked) @usableFromInline var isOutputLent = false
    /// On the loop's list of those that have something to write at this turn's end.
    var isToBeFlushed = false
    /// The socket is full: there is no use in writing before epoll says so.
    var isBlocked = false

    /// Takes over a connected stream socket, close-on-exec.
    ///
    /// - Throws: if epoll does not accept the descriptor, which then remains the caller's.
    package init(_ descriptor: CInt, on loop: EventLoop, handler: any StreamHandler) throws(SystemCallError) {
        self.descriptor = descriptor
        self.loop = loop
        self.handler = handler
        try loop.add(self)
    }

    // MARK: Reading

    /// How many received bytes are kept because the handler has not consumed them.
    package var bufferedInputBytes: Int { kept.count }

    /// The handler, when it leaves bytes over, says what it waits for: `totalBytes`, those left over included.
    ///
    /// A hint, to be given while `received(_:from:)` runs: one piece of memory of that size then takes the bytes as
    /// they come. Memory that no bytes have come for yet is reserved only, and not resident.
    package func expects(totalBytes: Int) {
        expectedBytes = totalBytes
    }

    /// Delivers nothing and reads nothing until ``resume()``. The peer is stopped by its full socket.
    package func pause() {
        isPaused = true
    }

    /// Ends a pause. What has been left over comes first, in this turn or the next one, though nothing new may arrive.
    package func resume() {
        guard isPaused else { return }
        isPaused = false
        guard phase == .open else { return }
        if !kept.isEmpty { continueNextTurn() }
        watchWhatIsWanted()
    }

    /// The handler has had its share of this turn: what is left over comes again in the next one, the other streams
    /// before it. Nothing is read until then.
    package func continueNextTurn() {
        guard !isContinuing else { return }
        isContinuing = true
        loop.continueNextTurn(self)
    }

    // MARK: Writing

    /// What is to be written at the end of the turn. Appending to a stream that is closed does nothing.
    @inlinable
    package var output: StreamBuffer {
        _read { yield pending }
        _modify {
            precondition(!isOutputLent, "two at once append to one stream's output")
            isOutputLent = true
            let countBefore = pending.count
            // Deferred because whoever appends may also throw.
            defer {
                isOutputLent = false
                outputChanged(from: countBefore)
            }
            yield &pending
        }
    }

    /// How many bytes are still to be written.
    package var pendingOutputBytes: Int { pending.count }

    // MARK: Closing

    /// Whether the handler still gets what arrives.
    package var isOpen: Bool { phase == .open }

    /// Closes the stream once its output has been written, or cannot be. Nothing is delivered any more.
    package func closeWhenFlushed() {
        guard phase == .open else { return }
        phase = .finishing
        flushThisTurn()
    }

    /// Closes the stream at the end of this turn and drops its output.
    package func close() {
        guard phase == .open || phase == .finishing else { return }
        phase = .closing
        loop.closeThisTurn(self)
    }
}
