import Glibc

// The loop's side of a stream: what happens in each step of a turn.

extension Stream {
    /// A rest up to this size is put before the next read in the loop's buffer, which costs less than a system call
    /// and has that read take all there is. A longer one stays where it is, and the read goes behind it.
    private static let shortRestBytes = 4096

    private var wantsToRead: Bool {
        phase == .open && !hasEnded && !isPaused
    }

    // MARK: What epoll reports

    func serve(_ readiness: Readiness) {
        // A handler that was called before in this turn may have closed the stream.
        guard phase == .open || phase == .finishing else { return }
        if !readiness.isDisjoint(with: .hungUp) { isHungUp = true }
        if isBlocked, readiness != .readable {
            isBlocked = false
            flushThisTurn()
        }
        guard readiness != .writable else { return }
        if wantsToRead {
            if !isContinuing { read() }
        } else if isHungUp, hasEnded {
            close()
        } else {
            watchWhatIsWanted()
        }
    }

    /// Has epoll watch for what the stream waits for now.
    ///
    /// EPOLLHUP comes unasked. A stream that wants nothing and is hung up is therefore not registered at all; it will
    /// be, and hear of it again, when it wants to read.
    func watchWhatIsWanted() {
        var wanted: Readiness? = []
        if wantsToRead { wanted?.insert(.readable) }
        if isBlocked { wanted?.insert(.writable) }
        if isHungUp, wanted == [] { wanted = nil }
        guard wanted != interest else { return }
        do {
            try loop.watch(descriptor, for: wanted, insteadOf: interest)
            interest = wanted
        } catch {
            // The kernel is out of memory for it. A stream that hears nothing would hang for ever.
            close()
        }
    }

    // MARK: Reading

    private func read() {
        let keptBefore = kept.count
        if keptBefore <= Self.shortRestBytes {
            readIntoLoopBuffer()
        } else {
            readIntoOwnBuffer()
        }
        loop.bufferedInputBytes += kept.count - keptBefore
        if hasEnded { end() }
    }

    private func readIntoLoopBuffer() {
        let buffer = loop.receiveBuffer
        buffer.copyMemory(from: kept.bytes)
        let received = receive(UnsafeMutableRawBufferPointer(rebasing: buffer[kept.count...]))
        guard received > 0 else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(kept.count + received)])
        let consumed = deliver(bytes)
        // The rest that was there is part of `bytes`. If there is a new one its memory is used again.
        if consumed == bytes.count {
            if !kept.isEmpty { kept.removeAll() }
        } else {
            kept.truncate(to: 0)
            kept.reserve(max(bytes.count - consumed, expectedBytes))
            kept.append(UnsafeRawBufferPointer(rebasing: bytes[consumed...]))
        }
    }

    private func readIntoOwnBuffer() {
        if kept.spareRoom.isEmpty { kept.reserve(2 * kept.count) }
        let room = kept.spareRoom
        let received = receive(UnsafeMutableRawBufferPointer(rebasing: room.prefix(loop.receiveBuffer.count)))
        guard received > 0 else { return }
        kept.extend(by: received)
        deliverKept()
    }

    /// One read(2). Answers how many bytes have come; none may also mean that the end has.
    private func receive(_ room: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = recv(descriptor, room.baseAddress, room.count, CInt(MSG_DONTWAIT))
            if count > 0 { return count }
            if count == 0 {
                hasEnded = true
                return 0
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: return 0
            default:
                // ECONNRESET: the peer has closed without reading all that it had been sent. Whatever the error,
                // nothing more will come.
                hasEnded = true
                isHungUp = true
                return 0
            }
        }
    }

    private func deliverKept() {
        kept.removeFirst(deliver(kept.bytes))
        if !kept.isEmpty { kept.reserve(expectedBytes) }
    }

    private func deliver(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let handler else { return 0 }
        expectedBytes = 0
        // The bytes stay where they are until the handler returns: nothing it can call touches the buffers of input.
        let consumed = unsafe bytes.withMemoryRebound(to: UInt8.self) { unsafe handler.received($0.span, from: self) }
        precondition(consumed >= 0 && consumed <= bytes.count, "a handler has consumed more than there was")
        return consumed
    }

    /// The peer's end has been read, and so the handler has had its chance at all that came before: nothing is read
    /// while it is paused or has not gone on.
    private func end() {
        handler?.reachedEnd(of: self)
        // What would have had to grow before it could be consumed never will.
        loop.bufferedInputBytes -= kept.count
        kept.removeAll()
        if isHungUp {
            close()
        } else if phase == .open {
            watchWhatIsWanted()
        }
    }

    /// The next turn after ``continueNextTurn()`` or ``resume()``.
    func goOn() {
        isContinuing = false
        guard phase == .open, !isPaused, !kept.isEmpty else { return }
        let keptBefore = kept.count
        deliverKept()
        loop.bufferedInputBytes += kept.count - keptBefore
    }

    // MARK: Writing

    /// The handler has had its hands on ``output``.
    @usableFromInline
    func outputChanged(from countBefore: Int) {
        let isWritten = phase == .open || phase == .finishing
        if !isWritten { pending.removeAll() }
        loop.pendingOutputBytes += pending.count - countBefore
        if isWritten { flushThisTurn() }
    }

    func flushThisTurn() {
        guard !isToBeFlushed else { return }
        isToBeFlushed = true
        loop.flushThisTurn(self)
    }

    func flush() {
        isToBeFlushed = false
        guard phase == .open || phase == .finishing, !isBlocked else { return }
        let countBefore = pending.count
        if countBefore > 0 { write() }
        loop.pendingOutputBytes += pending.count - countBefore
        watchWhatIsWanted()
        guard pending.isEmpty else { return }
        if phase == .finishing {
            close()
        } else if isPaused, countBefore > 0 {
            handler?.outputDrained(from: self)
        }
    }

    /// One write(2) of all that is pending.
    private func write() {
        let bytes = pending.bytes
        while true {
            let count = send(descriptor, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
            if count >= 0 {
                isBlocked = count < bytes.count
                return pending.removeFirst(count)
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: isBlocked = true
            case EPIPE, ECONNRESET:
                // The peer will not read any more. What it has written is still worth executing.
                pending.removeAll()
            default:
                // Something may be missing in the middle of what the peer gets.
                close()
            }
            return
        }
    }

    // MARK: Closing

    /// The end of the turn in which the stream was closed.
    func finishClosing() {
        // Closing the descriptor would not do if a child process had a copy of it at that moment.
        if interest != nil { try? loop.watch(descriptor, for: nil, insteadOf: interest) }
        Glibc.close(descriptor)
        loop.bufferedInputBytes -= kept.count
        loop.pendingOutputBytes -= pending.count
        kept.removeAll()
        pending.removeAll()
        phase = .closed
        let handler = handler
        self.handler = nil
        handler?.closed(self)
    }
}
