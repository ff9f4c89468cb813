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

    /// Binds the socket again after ``stop()``.
    package func listen() throws {
        socket = try Descriptor.listener(at: path)
    }

    /// Stops listening and removes the socket: connections fail from now on.
    package func stop() {
        socket = nil
        unlink(path)
    }

    /// The next connection, before its hello has been read.
    package func acceptSilently() throws -> ScriptedPeer {
        guard let socket, try socket.wait(for: POLLIN, until: Deadline()) != 0 else { throw Failure("no connection") }
        let peer = clinux_accept(socket.number)
        guard peer >= 0 else { throw Failure.system("accept4") }
        return ScriptedPeer(Descriptor(owning: peer))
    }

    /// The next connection, after a reply to its hello.
    package func accept(frameBytes: Int = 16 << 20) throws -> ScriptedPeer {
        let peer = try acceptSilently()
        let hello = try peer.request()
        guard hello.method == "session.hello" else { throw Failure("\(hello.method) instead of a hello") }
        try peer.reply(
            to:
                hello,
            #"{"daemon":"crudd","version":"0.1.0","protocol":1,"limits":{"frame_bytes":\#(frameBytes),"batch":1000}}"#)
        return peer
    }
}
