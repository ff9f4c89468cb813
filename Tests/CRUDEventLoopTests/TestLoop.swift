import Glibc
import Testing

@testable import CRUDEventLoop

/// A loop that the test iterates itself. No wait lasts longer than ten minutes.
final class TestLoop: IterationHandler {
    struct TimedOut: Error {}

    let loop: EventLoop
    private(set) var iterations = 0
    var onWoken: () -> Void = {}
    var onInputWasRead: () -> Void = {}
    var onIterationWillEnd: () -> Void = {}
    private var hasTimedOut = false
    private var watchdog: Timer?

    init() throws {
        loop = try EventLoop()
        let watchdog = Timer(on: loop) { [weak self] in
            self?.hasTimedOut = true
            self?.loop.stop()
        }
        watchdog.schedule(after: .seconds(600))
        self.watchdog = watchdog
    }

    func woken() { onWoken() }
    func inputWasRead() { onInputWasRead() }
    func iterationWillEnd() {
        iterations += 1
        onIterationWillEnd()
    }

    func iterate() throws {
        loop.iterate(self)
        guard !hasTimedOut else { throw TimedOut() }
    }

    /// Iterates until `condition` holds.
    func iterate(until condition: () throws -> Bool) throws {
        while try !condition() { try iterate() }
    }

    /// Iterates until the loop has been idle for 20 ms, and returns how many iterations that took.
    @discardableResult
    func iterateUntilIdle() throws -> Int {
        let iterationsBefore = iterations
        var isOver = false
        let timer = Timer(on: loop) { isOver = true }
        timer.schedule(after: .milliseconds(20))
        try iterate { isOver }
        return iterations - iterationsBefore
    }

    /// Runs the loop until it is stopped.
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
