import CLinux
import Glibc

/// Takes new connections. Called on the loop's thread.
package protocol ListenerHandler: AnyObject {
    /// A connection has been accepted.
    ///
    /// - Parameter descriptor: non-blocking, close-on-exec, and the handler's from here on.
    func accepted(_ descriptor: CInt, by listener: Listener)

    /// A connection has come in when the process had no descriptor left. It was accepted with the reserved one and is
    /// closed when this returns. The handler may send an error to it.
    func rejected(_ descriptor: CInt, by listener: Listener)
}

/// A listening socket on a loop.
///
/// With no descriptor left, accept(2) fails and leaves the connection in the queue, and epoll would report it over and
/// over. So the listener reserves one descriptor: it closes it, accepts the connection, has the handler inform the
/// peer, closes the connection, and opens the reserve again. If another thread takes the descriptor first, the listener
/// suspends accepting for a moment.
package final class Listener {
    package let loop: EventLoop
    package let descriptor: CInt

    /// How many connections one iteration accepts, lest many of them delay the requests of those that are open.
    private static let acceptsPerIteration = 64

    /// How long accepting is suspended when the kernel lacks descriptors or memory.
    private static let suspension = Duration.milliseconds(100)

    private var handler: (any ListenerHandler)?
    private var reserve: CInt
    private var isOpen = true
    private var isWatched = true
    /// Set while accepting is suspended.
    private var suspensionTimer: Timer?

    /// Takes ownership of a bound, listening, non-blocking stream socket.
    ///
    /// - Throws: if epoll does not accept the descriptor or there is none for the reserve. The descriptor then remains
    ///   the caller's.
    package init(_ descriptor: CInt, on loop: EventLoop, handler: any ListenerHandler) throws(SystemCallError) {
        self.descriptor = descriptor
        self.loop = loop
        self.handler = handler
        reserve = Self.openReserve()
        guard reserve >= 0 else { throw SystemCallError("open") }
        try loop.add(self)
    }

    deinit {
        if reserve >= 0 { Glibc.close(reserve) }
    }

    /// Stops accepting and closes the descriptor at the end of this iteration.
    package func close() {
        guard isOpen else { return }
        isOpen = false
        watchIfWanted()
        loop.closeThisIteration(self)
    }

    // MARK: The loop's side

    func accept() {
        for _ in 0..<Self.acceptsPerIteration {
            guard isWatched else { return }
            let connection = clinux_accept(descriptor)
            if connection >= 0 {
                handler?.accepted(connection, by: self)
                continue
            }
            switch errno {
            case EAGAIN: return
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE:
                guard rejectOne() else { return }
            default: return suspend()
            }
        }
    }

    func finishClosing() {
        Glibc.close(descriptor)
        suspensionTimer?.cancel()
        handler = nil
    }

    /// Accepts and rejects one connection with the reserve. Returns false if there was no connection, or no reserve.
    private func rejectOne() -> Bool {
        if reserve < 0 { reserve = Self.openReserve() }
        guard reserve >= 0 else {
            suspend()
            return false
        }
        Glibc.close(reserve)
        let connection = clinux_accept(descriptor)
        let isQueueEmpty = connection < 0 && errno == EAGAIN
        if connection >= 0 {
            handler?.rejected(connection, by: self)
            Glibc.close(connection)
        }
        reserve = Self.openReserve()
        if connection < 0, !isQueueEmpty { suspend() }
        return connection >= 0
    }

    private static func openReserve() -> CInt {
        clinux_open("/dev/null", O_RDONLY, 0)
    }

    private func suspend() {
        let timer = Timer(on: loop) { [weak self] in
            self?.suspensionTimer = nil
            self?.watchIfWanted()
        }
        suspensionTimer = timer
        timer.schedule(after: Self.suspension)
        watchIfWanted()
    }

    /// A listener that does not accept is not registered: a socket that has failed would be reported for ever.
    private func watchIfWanted() {
        let isWanted = isOpen && suspensionTimer == nil
        guard isWanted != isWatched else { return }
        do {
            try loop.watch(descriptor, for: isWanted ? .readable : nil, insteadOf: isWatched ? .readable : nil)
            isWatched = isWanted
        } catch {
            // Only registering can fail, when the kernel is out of memory.
            suspend()
        }
    }
}
