import CLinux
import CRUDTestSupport
import Glibc

/// The listening end of a ``ScriptedDaemon``.
package final class ScriptedListener {
    package let path: String
    private var socket: Descriptor?

    package init(path: String) throws {
        self.path = path
        try listen()
    }

    /// Binds the socket anew after ``stop()``.
    package func listen() throws {
        socket = try Descriptor.listener(at: path)
    }

    /// Stops listening and removes the socket: connections fail from now on.
    package func stop() {
        socket = nil
        unlink(path)
    }

    /// The next connection, its hello not read yet.
    package func acceptSilently() throws -> ScriptedPeer {
        guard let socket, try socket.wait(for: POLLIN, until: Deadline()) != 0 else { throw Failure("nobody connects") }
        let peer = clinux_accept(socket.number)
        guard peer >= 0 else { throw Failure.system("accept4") }
        return ScriptedPeer(Descriptor(owning: peer))
    }

    /// The next connection, its hello answered.
    package func accept(frameBytes: Int = 16 << 20) throws -> ScriptedPeer {
        let peer = try acceptSilently()
        let hello = try peer.request()
        guard hello.method == "session.hello" else { throw Failure("\(hello.method) instead of a hello") }
        try peer.answer(
            hello,
            #"{"daemon":"crudd","version":"0.1.0","protocol":1,"limits":{"frame_bytes":\#(frameBytes),"batch":1000}}"#)
        return peer
    }
}
