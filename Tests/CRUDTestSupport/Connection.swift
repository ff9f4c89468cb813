import Glibc

/// A client that sends bytes and frames, valid or not.
package final class Connection {
    private var descriptor: Descriptor?
    private var received: [UInt8] = []
    private var consumed = 0
    private var hasEnded = false
    /// Kept alive: a daemon without references is killed.
    private let daemon: Daemon?
    var lastID = 0

    /// Connects; as another user if `peer` is given. `daemon` lives at least as long as the connection object.
    package init(to path: String, as peer: Peer? = nil, of daemon: Daemon? = nil) throws {
        self.daemon = daemon
        let descriptor = try Descriptor.streamSocket()
        if let peer {
            try peer.connect(descriptor, to: path)
        } else {
            let outcome = try UnixAddress.with(path) { Glibc.connect(descriptor.number, $0, $1) }
            guard outcome == 0 else { throw Failure.system("connect \(path)") }
        }
        self.descriptor = descriptor
    }

    // MARK: Sending

    /// Four bytes of length, then the text.
    package static func frame(_ text: String) -> [UInt8] { frame(Array(text.utf8)) }

    /// Four bytes of length, then the bytes.
    package static func frame(_ body: [UInt8]) -> [UInt8] {
        header(UInt32(body.count)) + body
    }

    /// The length only.
    package static func header(_ length: UInt32) -> [UInt8] {
        [UInt8(length >> 24), UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
    }

    /// Sends all bytes and receives meanwhile, so that two full buffers cannot wait for each other.
    package func send(_ bytes: some Collection<UInt8>, until deadline: Deadline = Deadline()) throws {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            rest = rest.dropFirst(try sendSome(rest))
            guard !rest.isEmpty else { return }
            let events = try number.wait(for: POLLIN | POLLOUT, until: deadline)
            guard events != 0 else { throw Failure("the daemon does not read") }
            if events & POLLIN != 0 { try takeIn() }
        }
    }

    /// Sends as much as the daemon reads, without reading its replies; returns how much that was. The daemon is
    /// considered blocked if there is no room for the time of `timeout`.
    package func sendUntilBlocked(_ bytes: [UInt8], timeout: Duration = .milliseconds(500)) throws -> Int {
        var rest = bytes[...]
        while !rest.isEmpty {
            rest = rest.dropFirst(try sendSome(rest))
            guard !rest.isEmpty, try number.wait(for: POLLOUT, until: Deadline(timeout)) != 0 else { break }
        }
        return bytes.count - rest.count
    }

    package func sendFrame(_ text: String) throws { try send(Self.frame(text)) }

    package func sendFrame(_ body: [UInt8]) throws { try send(Self.frame(body)) }

    /// Shuts down this side; replies still come.
    package func shutDownWriting() throws {
        guard shutdown(try number.number, Int32(SHUT_WR)) == 0 else { throw Failure.system("shutdown") }
    }

    /// Closes both sides at once.
    package func close() { descriptor = nil }

    // MARK: Receiving

    /// The next frame's body; nil if the daemon has closed the connection.
    package func receiveFrame(until deadline: Deadline = Deadline()) throws -> [UInt8]? {
        while true {
            if let frame = try bufferedFrame() { return frame }
            if hasEnded {
                guard consumed == received.count else { throw Failure("the daemon closed inside a frame") }
                return nil
            }
            guard try number.wait(for: POLLIN, until: deadline) != 0 else { throw Failure("no reply") }
            try takeIn()
        }
    }

    /// Whether a frame, or the end, has arrived; does not wait.
    package func hasSomethingToRead() throws -> Bool {
        if consumed < received.count || hasEnded { return true }
        return try number.wait(for: POLLIN, until: Deadline(.zero)) != 0
    }

    /// Receives what has arrived; for callers that poll ``pollDescriptor`` themselves.
    package func takeIn() throws {
        if consumed == received.count {
            received.removeAll(keepingCapacity: true)
            consumed = 0
        }
        try withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 1) { chunk in
            while !hasEnded {
                let count = recv(try number.number, chunk.baseAddress, chunk.count, Int32(MSG_DONTWAIT))
                if count > 0 {
                    received += chunk[..<count]
                } else if count == 0 || errno == ECONNRESET {
                    hasEnded = true
                } else if errno == EAGAIN {
                    return
                } else if errno != EINTR {
                    throw Failure.system("recv")
                }
            }
        }
    }

    /// A whole frame that has been received already.
    package func bufferedFrame() throws -> [UInt8]? {
        guard received.count - consumed >= 4 else { return nil }
        let length = received[consumed..<consumed + 4].reduce(0) { $0 << 8 | Int($1) }
        guard length > 0 else { throw Failure("the daemon sent a frame of length 0") }
        guard received.count - consumed >= 4 + length else { return nil }
        let body = Array(received[consumed + 4..<consumed + 4 + length])
        consumed += 4 + length
        return body
    }

    /// For poll(2).
    package var pollDescriptor: Int32 { get throws { try number.number } }

    private var number: Descriptor {
        get throws {
            guard let descriptor else { throw Failure("this connection has been closed") }
            return descriptor
        }
    }

    /// Sends as much as there is room for, and returns how much. If the daemon has gone, everything counts as sent.
    package func sendSome(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
        let count = try bytes.withUnsafeBytes { Glibc.send(try number.number, $0.baseAddress, $0.count, flags) }
        if count >= 0 { return count }
        if errno == EAGAIN || errno == EINTR { return 0 }
        if errno == EPIPE || errno == ECONNRESET { return bytes.count }
        throw Failure.system("send")
    }
}
