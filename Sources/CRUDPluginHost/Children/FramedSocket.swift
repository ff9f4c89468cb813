import CLinux
import CRUDEventLoop

#if canImport(Glibc)
import Glibc
#endif

/// One end of a channel between the daemon and a child: a stream socket on which frames go to and fro.
///
/// It belongs to whoever makes it and is used by one thread at a time.
package struct FramedSocket: ~Copyable {
    private let descriptor: CInt
    private let maximumFrameBytes: Int
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    /// How many bytes there are, of which the first are the frame that was received last.
    private var filled = 0
    private var frameEnd = 0
    private var lookout = Lookout()

    /// A frame that was larger does not keep its memory.
    private static let modestBytes = 1 << 20
    private static let firstBytes = 64 << 10

    /// Why nothing, or nothing sensible, came or went.
    package enum Fault: Error, Equatable {
        /// The other side has closed its end.
        case ended
        /// The time that a call may take is over.
        case overdue
        /// What came is no frame.
        case garbage(String)
        /// The system has failed; its errno.
        case system(CInt)
    }

    /// - Parameter descriptor: closed with the value.
    package init(owning descriptor: CInt, maximumFrameBytes: Int) {
        self.descriptor = descriptor
        self.maximumFrameBytes = maximumFrameBytes
    }

    deinit {
        close(descriptor)
        free(base)
    }

    /// How long one sending or receiving may wait; for ever unless it is set.
    package func setPatience(_ patience: Duration) {
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] { set(option, patience) }
    }

    /// How long receiving may wait for a frame to begin; nil for ever.
    package func setReceivingPatience(_ patience: Duration?) {
        set(SO_RCVTIMEO, patience ?? .zero)
    }

    private func set(_ option: CInt, _ patience: Duration) {
        let (seconds, attoseconds) = patience.components
        var time = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Tells the other side of an open socket that nothing more will come, and takes nothing more from it.
    package static func shutDown(_ descriptor: CInt) {
        _ = shutdown(descriptor, CInt(SHUT_RDWR))
    }

    /// Sends a frame that is complete.
    package func send(_ frame: [UInt8], until deadline: ContinuousClock.Instant?) throws(Fault) {
        var sent = 0
        while sent < frame.count {
            let count = frame.withUnsafeBytes { bytes in
                // `sent` is below the count, as the loop's condition says.
                Glibc.send(descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, CInt(MSG_NOSIGNAL))
            }
            if count >= 0 {
                sent += count
            } else if errno != EINTR {
                throw Self.fault(errno)
            }
            if sent < frame.count, let deadline, ContinuousClock.now >= deadline { throw .overdue }
        }
    }

    /// Whether something has come behind the frame that was received last.
    package var hasMore: Bool { filled > frameEnd }

    /// Waits until something has come, or the other side has gone; false if nothing does in time.
    package func isReadable(within patience: Duration) -> Bool {
        if hasMore { return true }
        var events = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&events, 1, patience.pollMilliseconds) > 0
    }

    /// Receives one frame. What comes with it stays for the next time.
    ///
    /// - Returns: the frame without its length, until the next one is received.
    package mutating func receive(
        until deadline: ContinuousClock.Instant?
    ) throws(Fault) -> UnsafeBufferPointer<UInt8> {
        letGoOfFrame()
        var wanted = FrameWriter.headerBytes
        if filled >= wanted { wanted += try length() }
        while filled < wanted {
            reserve(filled == 0 ? Self.firstBytes : wanted)
            // `reserve` has made room for more than is filled.
            let count = receive(looksOut: filled == 0 && deadline == nil)
            if count == 0 { throw .ended }
            // With no deadline, only the beginning of a frame is not waited for longer than the socket's patience.
            if count < 0, count != -EINTR, !(count == -EAGAIN && filled > 0 && deadline == nil) {
                throw Self.fault(-count)
            }
            filled += Int(max(count, 0))
            if wanted == FrameWriter.headerBytes, filled >= wanted { wanted += try length() }
            if filled < wanted, let deadline, ContinuousClock.now >= deadline { throw .overdue }
        }
        frameEnd = wanted
        let payload = UnsafeRawBufferPointer(start: base, count: wanted).dropFirst(FrameWriter.headerBytes)
        return UnsafeRawBufferPointer(rebasing: payload).assumingMemoryBound(to: UInt8.self)
    }

    /// One recv(2) of as much as there is room for: how many bytes have come, or its errno below zero.
    ///
    /// - Parameter looksOut: whether what comes may come at once, or after a long time.
    private mutating func receive(looksOut: Bool) -> CInt {
        let (descriptor, place, room) = (descriptor, base.map { $0 + filled }, min(capacity - filled, Int(CInt.max)))
        let receive = { (flags: CInt) -> CInt in
            let count = recv(descriptor, place, room, flags)
            return count >= 0 ? CInt(count) : -errno
        }
        guard looksOut else { return receive(0) }
        return lookout.wait {
            let count = receive(CInt(MSG_DONTWAIT))
            return count >= 0 ? count : nil
        } sleep: {
            receive(0)
        }
    }

    private static func fault(_ code: CInt) -> Fault {
        switch code {
        case EAGAIN: .overdue
        case EPIPE, ECONNRESET: .ended
        default: .system(code)
        }
    }

    private func length() throws(Fault) -> Int {
        let header = UnsafeRawBufferPointer(start: base, count: FrameWriter.headerBytes)
        let length = header.reduce(0) { $0 << 8 | Int($1) }
        guard length <= maximumFrameBytes else {
            throw .garbage("a frame of \(length) bytes, where at most \(maximumFrameBytes) are allowed")
        }
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

    /// Forgets the frame that was received last, and brings what has come behind it to the front.
    private mutating func letGoOfFrame() {
        if hasMore, let base { memmove(base, base + frameEnd, filled - frameEnd) }
        filled -= frameEnd
        frameEnd = 0
        guard capacity > Self.modestBytes, filled == 0 else { return }
        free(base)
        base = nil
        capacity = 0
    }
}

extension Duration {
    /// As poll(2) wants it: in milliseconds, rounded up.
    var pollMilliseconds: CInt {
        let (seconds, attoseconds) = max(.zero, self).components
        return CInt(clamping: seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
