import CRUDThreads
import Glibc

/// One end of a channel between the daemon and a child: a stream socket that carries frames both ways.
///
/// It belongs to whoever makes it and is used by one thread at a time; deadlines are times of ``MonotonicTime``.
package struct FramedSocket: ~Copyable {
    private let descriptor: CInt
    private let maximumFrameBytes: Int
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    /// How many bytes there are, of which the first are the frame that was received last.
    private var filled = 0
    private var frameEnd = 0
    private var spin = AdaptiveSpin()

    /// A frame that was larger does not keep its memory.
    private static let keptBytes = 2 << 20
    private static let firstBytes = 64 << 10

    /// - Parameter descriptor: closed with the value.
    package init(owning descriptor: CInt, maximumFrameBytes: Int) {
        self.descriptor = descriptor
        self.maximumFrameBytes = maximumFrameBytes
    }

    deinit {
        close(descriptor)
        free(base)
    }

    /// How long one system call may wait; nil: for ever.
    package func setTimeout(_ timeout: Duration?) {
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] { set(option, timeout) }
    }

    /// How long receiving may wait for a frame to begin; nil: for ever.
    package func setReceivingTimeout(_ timeout: Duration?) {
        set(SO_RCVTIMEO, timeout)
    }

    private func set(_ option: CInt, _ timeout: Duration?) {
        let (seconds, attoseconds) = (timeout ?? .zero).components
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Tells the other side of an open socket that nothing more will come, and receives nothing more.
    package static func shutDown(_ descriptor: CInt) {
        _ = shutdown(descriptor, CInt(SHUT_RDWR))
    }

    // MARK: Sending

    /// Sends a frame that is complete.
    package func send(_ frame: inout FrameWriter, until deadline: Duration?) throws(ChannelError) {
        try Self.send(&frame, on: descriptor, until: deadline)
    }

    /// Sends a frame that is complete on an open socket.
    package static func send(
        _ frame: inout FrameWriter, on descriptor: CInt, until deadline: Duration?
    ) throws(ChannelError) {
        try frame.withPieces { front, payload throws(ChannelError) in
            let total = front.count + payload.count
            var sent = 0
            while sent < total {
                let count = send(front, payload, from: sent, on: descriptor)
                if count >= 0 {
                    sent += count
                } else if errno != EINTR {
                    throw ChannelError(errno: errno)
                }
                if sent < total, let deadline, MonotonicTime.now >= deadline { throw .timedOut }
            }
        }
    }

    /// One sendmsg(2) of what follows the first `sent` bytes of both pieces.
    private static func send(
        _ front: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, from sent: Int, on descriptor: CInt
    ) -> Int {
        func piece(_ bytes: UnsafeRawBufferPointer, from start: Int) -> iovec {
            let rest = bytes.dropFirst(start)
            // The kernel only reads what a message to be sent points at.
            return iovec(
                iov_base: UnsafeMutableRawPointer(mutating: UnsafeRawBufferPointer(rebasing: rest).baseAddress),
                iov_len: rest.count)
        }
        var pieces = (piece(front, from: sent), piece(payload, from: max(0, sent - front.count)))
        return withUnsafeMutablePointer(to: &pieces) { pieces in
            var message = msghdr()
            message.msg_iov = UnsafeMutableRawPointer(pieces).assumingMemoryBound(to: iovec.self)
            message.msg_iovlen = 2
            return sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL))
        }
    }

    // MARK: Receiving

    /// Whether something has come behind the frame that was received last.
    package var hasMore: Bool { filled > frameEnd }

    /// Waits until something has come, or the other side has gone; false if nothing does in time.
    package func isReadable(within timeout: Duration) -> Bool {
        if hasMore { return true }
        var events = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&events, 1, timeout.pollMilliseconds) > 0
    }

    /// Receives one frame. What comes with it stays for the next time.
    ///
    /// - Parameter deadline: nil: only the beginning of a frame is waited for no longer than
    ///   ``setReceivingTimeout(_:)`` says, and by spinning where that pays.
    /// - Returns: the frame without its length, until the next one is received.
    package mutating func receive(until deadline: Duration?) throws(ChannelError) -> UnsafeRawBufferPointer {
        discardFrame()
        var wanted = FrameWriter.lengthBytes
        if filled >= wanted { wanted += try length() }
        while filled < wanted {
            reserve(filled == 0 ? Self.firstBytes : wanted)
            let count = receive(spins: filled == 0 && deadline == nil)
            if count == 0 { throw .closed }
            if count < 0, count != -EINTR, !(count == -EAGAIN && filled > 0 && deadline == nil) {
                throw ChannelError(errno: -count)
            }
            filled += Int(max(count, 0))
            if wanted == FrameWriter.lengthBytes, filled >= wanted { wanted += try length() }
            if filled < wanted, let deadline, MonotonicTime.now >= deadline { throw .timedOut }
        }
        frameEnd = wanted
        return UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(start: base, count: wanted).dropFirst(FrameWriter.lengthBytes))
    }

    /// One recv(2) of as much as there is room for: how many bytes have come, or its errno below zero.
    private mutating func receive(spins: Bool) -> CInt {
        // `reserve` has made room behind what is filled.
        let (descriptor, place, room) = (descriptor, base.map { $0 + filled }, min(capacity - filled, Int(CInt.max)))
        let receive = { (flags: CInt) -> CInt in
            let count = recv(descriptor, place, room, flags)
            return count >= 0 ? CInt(count) : -errno
        }
        guard spins else { return receive(0) }
        return spin.wait {
            let count = receive(CInt(MSG_DONTWAIT))
            return count >= 0 ? count : nil
        } sleep: {
            receive(0)
        }
    }

    private func length() throws(ChannelError) -> Int {
        let length = FrameLength.read(UnsafeRawBufferPointer(start: base, count: FrameWriter.lengthBytes))
        guard length <= maximumFrameBytes else { throw ChannelError(.tooLong(length, maximum: maximumFrameBytes)) }
        return length
    }

    /// Makes room for `size` bytes; what is announced and does not come costs nothing but address space that doubles.
    private mutating func reserve(_ size: Int) {
        let size = max(min(size, max(filled * 2, Self.firstBytes)), filled + 1)
        guard size > capacity else { return }
        guard let larger = realloc(base, size) else {
            // As everywhere in Swift, running out of memory ends the process.
            fatalError("out of memory")
        }
        base = larger
        capacity = size
    }

    /// Discards the frame that was received last, and brings what has come behind it to the front.
    private mutating func discardFrame() {
        if hasMore, let base { memmove(base, base + frameEnd, filled - frameEnd) }
        filled -= frameEnd
        frameEnd = 0
        guard capacity > Self.keptBytes, filled == 0 else { return }
        free(base)
        base = nil
        capacity = 0
    }
}

extension ProtocolViolation {
    /// A frame that is longer than a frame may be.
    static func tooLong(_ length: Int, maximum: Int) -> ProtocolViolation {
        ProtocolViolation("a frame of \(length) bytes, where at most \(maximum) are allowed")
    }
}

extension Duration {
    /// As poll(2) wants it: in milliseconds, rounded up.
    var pollMilliseconds: CInt {
        let (seconds, attoseconds) = max(.zero, self).components
        return CInt(clamping: seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
