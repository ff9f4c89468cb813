import ArgumentParser
import CLinux
import Glibc

/// Sends back what it receives: the limit of kernel and client.
struct EchoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "echo", abstract: "Serve a raw echo on a socket.")

    @Option(help: "Path of the socket to serve.")
    var socket: String

    func run() throws {
        let listener = try UnixSocket.listen(socket)
        let poller = try Poller()
        try poller.add(listener, number: Int(listener))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let ready = try poller.wait(milliseconds: -1)
            for index in 0..<ready {
                let descriptor = Int32(poller.number(at: index))
                if descriptor == listener {
                    let peer = clinux_accept(listener)
                    if peer >= 0 { try poller.add(peer, number: Int(peer)) }
                } else if !echo(descriptor, buffer) {
                    close(descriptor)
                }
            }
        }
    }

    /// Sends back what one read returns. Returns false if the peer has closed its socket.
    private func echo(_ peer: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Bool {
        let count = recv(peer, buffer.baseAddress, buffer.count, 0)
        guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
        var sent = 0
        while sent < count {
            let more = send(peer, buffer.baseAddress?.advanced(by: sent), count - sent, Int32(MSG_NOSIGNAL))
            if more >= 0 {
                sent += more
            } else if errno == EAGAIN {
                // The client reads before it sends more, so that this wait is short.
                var full = pollfd(fd: peer, events: Int16(POLLOUT), revents: 0)
                _ = poll(&full, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
