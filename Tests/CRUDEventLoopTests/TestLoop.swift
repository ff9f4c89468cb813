import Glibc
import Testing

@testable import CRUDEventLoop

/// A loop whose turns the test takes itself. Nothing is waited for longer than a minute.
final class TestLoop: TurnHandler {
    struct TimedOut: Error {}

    let loop: EventLoop
    private(set) var turns = 0
    var onWoken: () -> Void = {}
    var onTurnDidRead: () -> Void = {}
    var onTurnWillEnd: () -> Void = {}
    private var hasTimedOut = false
    private var watchdog: Timer?

    init() throws {
        loop = try EventLoop()
        let watchdog = Timer(on: loop) { [weak self] in
            self?.hasTimedOut = true
            self?.loop.stop()
        }
        watchdog.schedule(after: .seconds(60))
        self.watchdog = watchdog
    }

    func woken() { onWoken() }
    func turnDidRead() { onTurnDidRead() }
    func turnWillEnd() {
        turns += 1
        onTurnWillEnd()
    }

    func turn() throws {
        loop.turn(self)
        guard !hasTimedOut else { throw TimedOut() }
    }

    /// Takes turns until `condition` holds.
    func turn(until condition: () throws -> Bool) throws {
        while try !condition() { try turn() }
    }

    /// Takes turns until the loop has had nothing to do for a while, and tells how many those were.
    @discardableResult
    func turnUntilIdle() throws -> Int {
        let turnsBefore = turns
        var isOver = false
        let timer = Timer(on: loop) { isOver = true }
        timer.schedule(after: .milliseconds(20))
        try turn { isOver }
        return turns - turnsBefore
    }

    /// Runs the loop until somebody stops it.
    func run() throws {
        loop.run(self)
        guard !hasTimedOut else { throw TimedOut() }
    }

    /// Closes everything on the loop.
    func finish() {
        loop.stop()
        loop.run(self)
    }
}

/// Runs `body` on a thread of its own.
final class TestThread {
    private var thread = pthread_t()

    init(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Box(body))
        pthread_create(
            &thread, nil,
            { argument in
                // pthread_create hands on what it was given, which is not nil.
                Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, box.toOpaque())
    }

    func join() {
        pthread_join(thread, nil)
    }

    private final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
