import CLinux
import Glibc

/// Decides about new connections. Called on the loop's thread.
package protocol ListenerHandler: AnyObject {
    /// A connection has come in.
    ///
    /// - Parameter descriptor: non-blocking, close-on-exec, and the handler's from here on.
    func accepted(_ descriptor: CInt, by listener: Listener)

    /// A connection has come in that the process has no descriptor left for; it is accepted with the reserve and will
    /// be closed when this returns. The handler may send a few words about it.
    func turnedAway(_ descriptor: CInt, by listener: Listener)
}

/// A listening socket on a loop.
///
/// With no descriptor left, accept(2) fails and leaves the connection in the queue, and epoll would report it over and
/// over. So the listener keeps one descriptor in reserve: it lets go of it, accepts, has the peer told, closes, and
/// takes the reserve back. Should another thread be quicker to take it, the listener looks away for a moment.
package final class Listener {
    package let loop: EventLoop
    package let descriptor: CInt

    /// How many connections are accepted in one turn, so that a storm of them leaves room for those that are there.
    private static let acceptsPerTurn = 64

    /// How long accepting rests when the kernel is out of something.
    private static let rest = Duration.milliseconds(100)

    private var handler: (any ListenerHandler)?
    private var reserve: CInt
    private var isOpen = true
    private var isPaused = false
    private var isWatched = true
    /// Set while accepting rests.
    private var restTimer: Timer?

    /// Takes over a bound, listening, non-blocking stream socket.
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

    /// Accepts nobody until ``resume()``; who connects waits in the socket's queue.
    package func pause() {
        isPaused = true
        watchIfWanted()
    }

    package func resume() {
        isPaused = false
        watchIfWanted()
    }

    /// Accepts nobody any more and closes the descriptor at the end of this turn.
    package func close() {
        guard isOpen else { return }
        isOpen = false
        watchIfWanted()
        loop.closeThisTurn(self)
    }

    // MARK: The loop's side

    func accept() {
        for _ in 0..<Self.acceptsPerTurn {
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
                guard turnAway() else { return }
            default: return takeRest()
            }
        }
    }

    func finishClosing() {
        Glibc.close(descriptor)
        restTimer?.cancel()
        handler = nil
    }

    /// Accepts one connection with the reserve. False if there was none, or no reserve.
    private func turnAway() -> Bool {
        if reserve < 0 { reserve = Self.openReserve() }
        guard reserve >= 0 else {
            takeRest()
            return false
        }
        Glibc.close(reserve)
        let connection = clinux_accept(descriptor)
        let isQueueEmpty = connection < 0 && errno == EAGAIN
        if connection >= 0 {
            handler?.turnedAway(connection, by: self)
            Glibc.close(connection)
        }
        reserve = Self.openReserve()
        if connection < 0, !isQueueEmpty { takeRest() }
        return connection >= 0
    }

    private static func openReserve() -> CInt {
        clinux_open("/dev/null", O_RDONLY, 0)
    }

    private func takeRest() {
        let timer = Timer(on: loop) { [weak self] in
            self?.restTimer = nil
            self?.watchIfWanted()
        }
        restTimer = timer
        timer.schedule(after: Self.rest)
        watchIfWanted()
    }

    /// A listener that accepts nobody is not registered: a socket that has failed would be reported for ever.
    private func watchIfWanted() {
        let isWanted = isOpen && !isPaused && restTimer == nil
        guard isWanted != isWatched else { return }
        do {
            try loop.watch(descriptor, for: isWanted ? .readable : nil, insteadOf: isWatched ? .readable : nil)
            isWatched = isWanted
        } catch {
            // Only adding can fail, for want of memory.
            takeRest()
        }
    }
}
