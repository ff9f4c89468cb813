import Glibc

/// The listening end of a ``ScriptedDaemon``.
package final class ScriptedListener {
    package let path: String
    private var socket: Int32 = -1

    package init(path: String) throws {
        self.path = path
        try listen()
    }

    deinit {
        stop()
    }

    /// Binds the socket anew after ``stop()``.
    package func listen() throws {
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { throw ScriptFault("path too long") }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafeBytes(of: address) { bytes in
            bind(socket, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard bound == 0, Glibc.listen(socket, 64) == 0 else { throw ScriptFault("cannot listen at \(path): \(errno)") }
    }

    /// Stops listening and removes the socket: connections fail from now on.
    package func stop() {
        guard socket >= 0 else { return }
        close(socket)
        unlink(path)
        socket = -1
    }

    /// The next connection, its hello not read yet.
    package func acceptSilently() throws -> ScriptedPeer {
        var poll = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 10_000) == 1 else { throw ScriptFault("nobody connects") }
        let peer = Glibc.accept(socket, nil, nil)
        guard peer >= 0 else { throw ScriptFault("accept: \(errno)") }
        return ScriptedPeer(socket: peer)
    }

    /// The next connection, its hello answered.
    package func accept(frameBytes: Int = 16 << 20) throws -> ScriptedPeer {
        let peer = try acceptSilently()
        let hello = try peer.request()
        guard hello.method == "session.hello" else { throw ScriptFault("\(hello.method) instead of a hello") }
        try peer.answer(
            hello,
            #"{"daemon":"crudd","version":"0.1.0","protocol":1,"limits":{"frame_bytes":\#(frameBytes),"batch":1000}}"#)
        return peer
    }
}
