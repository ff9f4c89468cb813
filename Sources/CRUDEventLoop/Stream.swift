import Glibc

/// Handles the input of one stream. Called on the loop's thread, never from within a call of the stream's own.
package protocol StreamHandler: AnyObject {
    /// Bytes have arrived: those that were left unconsumed last time, followed by new ones.
    ///
    /// Bytes that are not consumed are kept and delivered again: when more has arrived, in the next iteration after
    /// ``Stream/resumeNextIteration()``, or after ``Stream/resume()``.
    ///
    /// - Parameter bytes: not empty; valid until the call returns.
    /// - Returns: how many bytes, from the first one on, the handler has consumed.
    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int

    /// The peer has shut down its writing side, and all that it wrote has been delivered; what has not been consumed is
    /// dropped. The peer may still be reading: the stream stays open until the handler closes it or the peer closes its
    /// socket.
    func reachedEnd(of stream: Stream)

    /// Output has been written, as much as the peer takes now; ``Stream/pendingOutputBytes`` is what is left of it.
    func outputWritten(to stream: Stream)

    /// The stream is closed, for whatever reason; the last call for this stream.
    func closed(_ stream: Stream)
}

/// A connected socket on a loop: received bytes go to a ``StreamHandler``, appended bytes to the peer.
///
/// **Reading** goes into a buffer of the loop's; what the handler does not consume is kept here. An iteration makes one
/// read(2) at most, and none while bytes are left that the handler could still consume (it is paused, or is resumed in
/// the next iteration), so a stream keeps no more than one read beyond what its handler waits for.
///
/// **Writing** is appending to ``output``, which is written at the end of the iteration. What a peer does not read
/// stays there until it does. The handler has to bound it, with ``pendingOutputBytes`` and ``pause()``.
///
/// **Ends.** A peer may shut down its writing side and still read: `reachedEnd(of:)` leaves the decision to the
/// handler. That a peer has closed its socket shows only when it is written to (EPIPE) or in epoll's report (EPOLLHUP),
/// when bytes that it sent before may not have been read. Those are still delivered, over several iterations if the
/// handler pauses; only output is dropped, because nobody will read it. After the last byte `reachedEnd(of:)` is
/// called, directly followed by `closed(_:)`.
package final class Stream {
    package let loop: EventLoop

    /// For asking the kernel about the peer; only the stream reads, writes and closes it.
    package let descriptor: CInt

    /// Nil once the stream is closed: handlers usually refer to their stream, and the reference cycle has to end.
    var handler: (any StreamHandler)?

    enum Phase {
        case open
        /// To be closed as soon as the output is written; nothing is read any more.
        case finishing
        /// To be closed at the end of this iteration; nothing is read or written any more.
        case closing
        case closed
    }
    var phase = Phase.open

    // What epoll watches for; nil if the descriptor is not registered. It is changed only when epoll reports what the
    // stream does not want, or the stream wants what epoll does not watch for: a short pause costs no system call.
    var interest: Readiness? = .readable

    /// epoll has reported that both directions are shut: nobody reads what is written.
    package internal(set) var isHungUp: Bool {
        get { hangUp.hasHappened }
        set { hangUp.hasHappened = newValue }
    }
    /// The same for other threads.
    package let hangUp = HangUp()

    // Reading. `kept` is what the handler has not consumed; `expectedBytes` is how much it waits for.
    var hasEnded = false
    // Exclusive access to `kept` and `pending` is not checked at run time, as in ``EventLoop``.
    @exclusivity(unchecked) var kept = StreamBuffer()
    var expectedBytes = 0
    var isPaused = false
    /// On the loop's list of streams that are resumed in the next iteration.
    var isResuming = false

    // Writing.
    @exclusivity(unchecked) @usableFromInline var pending = StreamBuffer()
    /// Whether somebody is appending; replaces Swift's own check of exclusive access to `pending`.
    @exclusivity(unchecked) @usableFromInline var isOutputBorrowed = false
    /// On the loop's list of streams that are written to at the end of this iteration.
    var needsFlush = false
    /// The socket is full: writing has to wait until epoll reports room.
    var isBlocked = false

    /// Takes ownership of a connected stream socket, close-on-exec.
    ///
    /// - Throws: if epoll does not accept the descriptor, which then remains the caller's.
    package init(_ descriptor: CInt, on loop: EventLoop, handler: any StreamHandler) throws(SystemCallError) {
        self.descriptor = descriptor
        self.loop = loop
        self.handler = handler
        try loop.add(self)
    }

    /// How many bytes have been read and written.
    package internal(set) var receivedBytes: UInt64 = 0
    package internal(set) var sentBytes: UInt64 = 0

    // MARK: Reading

    /// How many received bytes are kept because the handler has not consumed them yet.
    package var bufferedInputBytes: Int { kept.count }

    /// A hint by a handler that does not consume all: it waits for `totalBytes`, the unconsumed ones included.
    ///
    /// To be called while `received(_:from:)` runs: the bytes are then collected in one allocation of that size. Memory
    /// for bytes that have not arrived is reserved only, and not resident.
    package func expects(totalBytes: Int) {
        expectedBytes = totalBytes
    }

    /// Neither reads nor delivers anything until ``resume()``. The full socket stops the peer.
    package func pause() {
        isPaused = true
    }

    /// Ends a pause. Unconsumed bytes are delivered in this iteration or the next one, even if nothing new arrives.
    package func resume() {
        guard isPaused else { return }
        isPaused = false
        guard phase == .open else { return }
        if !kept.isEmpty { resumeNextIteration() }
        watchWhatIsWanted()
    }

    /// For a handler that has used up its share of this iteration: unconsumed bytes are delivered again in the next
    /// one, after the other streams were served. Nothing is read until then.
    package func resumeNextIteration() {
        guard !isResuming else { return }
        isResuming = true
        loop.resumeNextIteration(self)
    }

    /// Has the kernel refuse what the peer sends from now on (EPIPE). What it has sent before is still delivered, and
    /// then `reachedEnd(of:)` is called.
    package func endInput() {
        guard phase == .open else { return }
        shutdown(descriptor, CInt(SHUT_RD))
    }

    // MARK: Writing

    /// What is to be written at the end of the iteration. Appending to a closed stream does nothing.
    @inlinable
    package var output: StreamBuffer {
        _read { yield pending }
        _modify {
            precondition(!isOutputBorrowed, "overlapping accesses to a stream's output")
            isOutputBorrowed = true
            if pending.capacity == 0 { supplyOutputMemory() }
            // Deferred because the caller's code may throw.
            defer {
                isOutputBorrowed = false
                outputChanged()
            }
            yield &pending
        }
    }

    /// How many bytes are still to be written.
    package var pendingOutputBytes: Int { pending.count }

    // MARK: Closing

    /// Whether the handler still gets what arrives.
    package var isOpen: Bool { phase == .open }

    /// Closes the stream once its output has been written or cannot be written. Nothing is delivered any more.
    package func closeWhenFlushed() {
        guard phase == .open else { return }
        phase = .finishing
        flushThisIteration()
    }

    /// Closes the stream at the end of this iteration and drops its output.
    package func close() {
        guard phase == .open || phase == .finishing else { return }
        phase = .closing
        loop.closeThisIteration(self)
    }
}
