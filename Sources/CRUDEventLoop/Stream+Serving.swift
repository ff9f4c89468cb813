import Glibc

// The loop's side of a stream: what it does in each step of an iteration.

extension Stream {
    /// Up to so many unconsumed bytes are copied to the start of the loop's buffer, and the next read goes behind them.
    /// That costs less than a second system call. More than that stays where it is, and the read goes behind it.
    private static let maximumCopiedBytes = 4096

    private var wantsToRead: Bool {
        phase == .open && !hasEnded && !isPaused
    }

    // MARK: What epoll reports

    func serve(_ readiness: Readiness) {
        // A handler that was called earlier in this iteration may have closed the stream.
        guard phase == .open || phase == .finishing else { return }
        if !readiness.isDisjoint(with: .hungUp) { isHungUp = true }
        if isBlocked, readiness != .readable {
            isBlocked = false
            flushThisIteration()
        }
        guard readiness != .writable else { return }
        if wantsToRead {
            if !isResuming { read() }
        } else if isHungUp, hasEnded {
            close()
        } else {
            watchWhatIsWanted()
        }
    }

    /// Makes epoll watch for what the stream waits for now.
    ///
    /// EPOLLHUP is reported unasked. Therefore a stream that waits for nothing and is hung up is not registered; when
    /// it wants to read it is registered again, and told again.
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
            // The kernel is out of memory. A stream that is not watched would hang for ever.
            close()
        }
    }

    // MARK: Reading

    private func read() {
        let keptBefore = kept.count
        if keptBefore <= Self.maximumCopiedBytes {
            readIntoLoopBuffer()
        } else {
            readIntoOwnBuffer()
        }
        if hasEnded { end() }
    }

    private func readIntoLoopBuffer() {
        let buffer = loop.receiveBuffer
        buffer.copyMemory(from: kept.bytes)
        let received = receive(UnsafeMutableRawBufferPointer(rebasing: buffer[kept.count...]))
        guard received > 0 else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(kept.count + received)])
        let consumed = deliver(bytes)
        // What was kept is part of `bytes`. Its memory is reused if there is something to keep again.
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

    /// One read(2). Returns how many bytes have arrived; 0 also at the end of the stream.
    private func receive(_ room: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = recv(descriptor, room.baseAddress, room.count, CInt(MSG_DONTWAIT))
            if count > 0 {
                receivedBytes &+= UInt64(count)
                return count
            }
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
        // The bytes stay where they are until the handler returns: nothing that it can call changes the input buffers.
        let consumed = unsafe bytes.withMemoryRebound(to: UInt8.self) { unsafe handler.received($0.span, from: self) }
        precondition(consumed >= 0 && consumed <= bytes.count, "a handler has consumed more than there was")
        return consumed
    }

    /// The end of the peer's output has been read. Everything before it has been delivered: nothing is read while the
    /// handler is paused or waits to be resumed.
    private func end() {
        handler?.reachedEnd(of: self)
        // An incomplete message stays incomplete.
        kept.removeAll()
        if isHungUp {
            close()
        } else if phase == .open {
            watchWhatIsWanted()
        }
    }

    /// Delivers unconsumed bytes in the iteration after ``resumeNextIteration()`` or ``resume()``.
    func deliverAgain() {
        isResuming = false
        guard phase == .open, !isPaused, !kept.isEmpty else { return }
        deliverKept()
    }

    /// Drops what has been received and not been consumed. Not to be called while something is delivered.
    package func discardInput() { kept.removeAll() }

    // MARK: Writing

    /// Memory for an output that has none.
    @usableFromInline
    func supplyOutputMemory() {
        loop.spareMemory.supply(&pending)
    }

    /// Sees that what has been appended to ``output`` is written.
    @usableFromInline
    func outputChanged() {
        if phase == .open || phase == .finishing { flushThisIteration() } else { pending.removeAll() }
    }

    func flushThisIteration() {
        guard !needsFlush else { return }
        needsFlush = true
        loop.flushThisIteration(self)
    }

    func flush() {
        needsFlush = false
        guard phase == .open || phase == .finishing, !isBlocked else { return }
        let hadOutput = !pending.isEmpty
        if hadOutput { write() } else { loop.spareMemory.reclaim(&pending) }
        watchWhatIsWanted()
        if phase == .finishing, pending.isEmpty {
            close()
        } else if hadOutput {
            handler?.outputWritten(to: self)
        }
    }

    /// One write(2) of all that is pending.
    private func write() {
        let bytes = pending.bytes
        while true {
            let count = send(descriptor, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
            if count >= 0 {
                isBlocked = count < bytes.count
                sentBytes &+= UInt64(count)
                return isBlocked ? pending.removeFirst(count) : loop.spareMemory.reclaim(&pending)
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: isBlocked = true
            case EPIPE, ECONNRESET:
                // The peer will not read any more. What it has written is still executed.
                pending.removeAll()
            default:
                // Output may have been lost: what followed would be misread.
                close()
            }
            return
        }
    }

    // MARK: Closing

    /// Closes the descriptor, at the end of the iteration in which the stream was closed.
    func finishClosing() {
        // Closing alone does not unregister a descriptor of which a child process has a copy.
        if interest != nil { try? loop.watch(descriptor, for: nil, insteadOf: interest) }
        Glibc.close(descriptor)
        kept.removeAll()
        pending.removeAll()
        phase = .closed
        let handler = handler
        self.handler = nil
        handler?.closed(self)
    }
}
