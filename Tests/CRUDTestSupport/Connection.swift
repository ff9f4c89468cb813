import Glibc

/// A client that speaks bytes and frames, and is able to do everything wrong.
package final class Connection {
    private var descriptor: Descriptor?
    private var received: [UInt8] = []
    private var consumed = 0
    private var hasEnded = false
    /// A daemon that nobody holds is killed: a connection holds its own.
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

    /// The length alone, whatever follows.
    package static func header(_ length: UInt32) -> [UInt8] {
        [UInt8(length >> 24), UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
    }

    /// Sends all of it, taking in what comes meanwhile, so that two full buffers never wait for each other.
    package func send(_ bytes: some Collection<UInt8>, until deadline: Deadline = Deadline()) throws {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            rest = rest.dropFirst(try sendSome(rest))
            guard !rest.isEmpty else { return }
            let events = try number.wait(for: POLLIN | POLLOUT, until: deadline)
            guard events != 0 else { throw Failure("the daemon takes nothing more") }
            if events & POLLIN != 0 { try takeIn() }
        }
    }

    /// Sends as much as the daemon takes without ever reading from it; answers how much that was. The daemon counts as
    /// no longer reading after `patience` without room.
    package func sendUntilBlocked(_ bytes: [UInt8], patience: Duration = .milliseconds(500)) throws -> Int {
        var rest = bytes[...]
        while !rest.isEmpty {
            rest = rest.dropFirst(try sendSome(rest))
            guard !rest.isEmpty, try number.wait(for: POLLOUT, until: Deadline(patience)) != 0 else { break }
        }
        return bytes.count - rest.count
    }

    package func sendFrame(_ text: String) throws { try send(Self.frame(text)) }

    package func sendFrame(_ body: [UInt8]) throws { try send(Self.frame(body)) }

    /// Ends this side; answers still come.
    package func shutDownWriting() throws {
        guard shutdown(try number.number, Int32(SHUT_WR)) == 0 else { throw Failure.system("shutdown") }
    }

    /// Closes both sides at once.
    package func close() { descriptor = nil }

    // MARK: Receiving

    /// The next frame's body; nil where the daemon has closed the connection.
    package func receiveFrame(until deadline: Deadline = Deadline()) throws -> [UInt8]? {
        while true {
            if let frame = try bufferedFrame() { return frame }
            if hasEnded {
                guard consumed == received.count else { throw Failure("the daemon closed inside a frame") }
                return nil
            }
            guard try number.wait(for: POLLIN, until: deadline) != 0 else { throw Failure("no answer") }
            try takeIn()
        }
    }

    /// Whether a frame has come, or the end, without waiting for it.
    package func hasSomethingToRead() throws -> Bool {
        if consumed < received.count || hasEnded { return true }
        return try number.wait(for: POLLIN, until: Deadline(.zero)) != 0
    }

    /// Takes in what has come; for those that poll over ``pollDescriptor`` themselves.
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

    /// A whole frame that has been taken in already.
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

    /// Sends what there is room for; answers how much. A daemon that has gone takes everything, as a pipe to it would.
    package func sendSome(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let flags = Int32(MSG_DONTWAIT | MSG_NOSIGNAL)
        let count = try bytes.withUnsafeBytes { Glibc.send(try number.number, $0.baseAddress, $0.count, flags) }
        if count >= 0 { return count }
        if errno == EAGAIN || errno == EINTR { return 0 }
        if errno == EPIPE || errno == ECONNRESET { return bytes.count }
        throw Failure.system("send")
    }
}
